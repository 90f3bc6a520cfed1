import { LEASE } from '@tutti/kube'
import t from 'tap'
import { memoryClient } from '../testing/memory-client.ts'
import { leadingClient, NotLeadingError } from './leading-client.ts'

const KEY = { namespace: 'a', name: 'b' }

await t.test('reads always go through, writes only while the lease is held', async (t) => {
  const client = memoryClient()
  const leader = { holdsLease: true }
  const leading = leadingClient(client, leader)
  const options = { fieldManager: 'x' }
  const lease = await leading.create(LEASE, { metadata: KEY }, options)
  leader.holdsLease = false
  const writes = [
    () => leading.create(LEASE, { metadata: KEY }, options),
    () => leading.apply(LEASE, { metadata: KEY }, options),
    () => leading.applyStatus(LEASE, { metadata: KEY }, options),
    () => leading.replace(LEASE, lease, options),
    () => leading.mergePatch(LEASE, KEY, { ...options, patch: {} }),
    () => leading.delete(LEASE, KEY),
  ]
  for (const write of writes) await t.rejects(async () => void (await write()), NotLeadingError)
  t.equal(client.calls.length, 1)
  t.equal((await leading.get(LEASE, KEY)).metadata.name, 'b')
})
