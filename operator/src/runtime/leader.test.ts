import { type Logger, silentLogger } from '@tutti/chassis'
import { createManualClock, type ManualClock } from '@tutti/chassis/testing'
import { LEASE, type Lease, type Stored } from '@tutti/kube'
import t from 'tap'
import { kubeError, type MemoryClient, memoryClient } from '../testing/memory-client.ts'
import { settle } from '../testing/settle.ts'
import { testMetrics } from '../testing/test-metrics.ts'
import { LeaderElection } from './leader.ts'

const KEY = { namespace: 'tutti-system', name: 'tutti-operator' }

function candidate(o: {
  client: MemoryClient
  clock: ManualClock
  identity: string
  log?: Logger
}) {
  const told: string[] = []
  const { read, runtime } = testMetrics()
  const election = new LeaderElection({
    log: silentLogger,
    ...o,
    key: KEY,
    random: () => 0,
    metrics: runtime,
    onTaken: () => told.push('taken'),
    onLost: () => told.push('lost'),
  })
  const gauge = () => read('leader_election_master_status{name="tutti-operator"}')
  return { election, told, gauge }
}

function rig() {
  const client = memoryClient()
  const clock = createManualClock()
  const lease = () => client.objects.get('Lease tutti-system/tutti-operator') as Stored<Lease>
  /** Moves on step by step, so that each try has been answered before the next. */
  const pass = async (ms: number): Promise<void> => {
    await settle()
    for (let left = ms; left > 0; left -= 500) {
      clock.advance(Math.min(500, left))
      await settle()
    }
  }
  return { client, clock, lease, pass }
}

await t.test('the first takes the lease and renews it; the second waits', async (t) => {
  const { client, clock, lease, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  const two = candidate({ client, clock, identity: 'two' })
  t.equal(await one.gauge(), 0)
  one.election.start()
  await pass(100)
  two.election.start()
  await pass(60_000)
  t.same([one.told, two.told], [['taken'], []])
  t.ok(one.election.holdsLease)
  t.equal(await one.gauge(), 1)
  t.match(lease().spec, { holderIdentity: 'one', leaseDurationSeconds: 15, leaseTransitions: 0 })
  t.match(lease().spec?.renewTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  t.ok(String(lease().spec?.renewTime) > String(lease().spec?.acquireTime))
  const writes = client.calls.filter(({ verb }) => verb !== 'get').length
  t.ok(writes >= 29 && writes <= 32, `${writes} writes in a minute`)
})

await t.test(
  'a leader that is gone is followed once its lease has ended, by the clock here',
  async (t) => {
    const { client, clock, lease, pass } = rig()
    // A wrong clock: the processes do not compare clocks.
    const spec = {
      holderIdentity: 'gone',
      leaseDurationSeconds: 15,
      acquireTime: '2031-01-01T00:00:00.000000Z',
      renewTime: '2031-01-01T00:00:00.000000Z',
      leaseTransitions: 4,
    }
    client.put(LEASE, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: KEY, spec })
    const two = candidate({ client, clock, identity: 'two' })
    two.election.start()
    await pass(14_500)
    t.same(two.told, [])
    await pass(2_500)
    t.same(two.told, ['taken'])
    t.match(lease().spec, { holderIdentity: 'two', leaseTransitions: 5 })
  },
)

await t.test('a lease that is given up is taken at the next try', async (t) => {
  const { client, clock, lease, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  const two = candidate({ client, clock, identity: 'two' })
  one.election.start()
  await pass(5000)
  two.election.start()
  await pass(5000)
  await one.election.release()
  t.match(lease().spec, { holderIdentity: '', leaseDurationSeconds: 1 })
  t.equal(one.election.isLeader, false)
  await pass(2500)
  t.same([one.told, two.told], [['taken'], ['taken']])
  t.equal(lease().spec?.leaseTransitions, 1)
  await pass(60_000)
  t.equal(lease().spec?.holderIdentity, 'two', 'the one that gave up tries no more')
})

await t.test('a leader that cannot renew stops before others may begin', async (t) => {
  const { client, clock, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  one.election.start()
  await pass(4000)
  client.onCall = () => {
    throw kubeError(500, 'InternalError')
  }
  await pass(8000)
  t.same(one.told, ['taken'])
  await pass(2500)
  t.same(one.told, ['taken', 'lost'])
  t.equal(one.election.holdsLease, false)
  t.equal(await one.gauge(), 0)
})

await t.test('a request that hangs does not hold up the end', async (t) => {
  const { client, clock, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  one.election.start()
  await pass(4000)
  client.onCall = async () => await new Promise<never>(() => {})
  await pass(10_500)
  t.same(one.told, ['taken', 'lost'])
})

await t.test('an outage that is shorter than the deadline changes nothing', async (t) => {
  const { client, clock, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  one.election.start()
  await pass(4000)
  client.onCall = () => {
    throw kubeError(0, 'NoConnection')
  }
  await pass(5000)
  client.onCall = undefined
  await pass(60_000)
  t.same(one.told, ['taken'])
})

await t.test('a renewal whose answer was lost is found to be ours', async (t) => {
  const { client, clock, lease, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  one.election.start()
  await pass(4000)
  let lost = 0
  client.onAnswer = ({ verb }) => {
    if (verb !== 'replace' || lost > 2) return
    lost += 1
    throw kubeError(0, 'NoConnection')
  }
  await pass(20_000)
  t.equal(lost, 3)
  t.same(one.told, ['taken'])
  t.equal(lease().spec?.leaseTransitions, 0)
})

await t.test('a lease that is deleted is made anew, one that is stolen is lost', async (t) => {
  const { client, clock, lease, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  one.election.start()
  await pass(4000)
  client.remove(LEASE, KEY)
  await pass(4000)
  t.equal(lease().spec?.holderIdentity, 'one')
  t.same(one.told, ['taken'])
  client.put(LEASE, { ...lease(), spec: { ...lease().spec, holderIdentity: 'thief' } })
  await pass(2500)
  t.same(one.told, ['taken', 'lost'])
  await pass(60_000)
  t.equal(lease().spec?.holderIdentity, 'thief')
})

await t.test('a process that was frozen knows at once that it may not write', async (t) => {
  const { client, clock, pass } = rig()
  let frozenMs = 0
  const thawed = { ...clock, now: () => clock.now() + frozenMs }
  const one = candidate({ client, clock: thawed, identity: 'one' })
  one.election.start()
  await pass(4000)
  t.equal(one.election.holdsLease, true)
  const calls = client.calls.length
  frozenMs = 16_000
  t.equal(one.election.holdsLease, false)
  await pass(2500)
  t.same(one.told, ['taken', 'lost'])
  t.equal(client.calls.length, calls, 'nothing more is sent')
})

await t.test('stop keeps the lease and tries no more', async (t) => {
  const { client, clock, lease, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  one.election.start()
  await pass(4000)
  one.election.stop()
  await one.election.release()
  const calls = client.calls.length
  await pass(60_000)
  t.equal(client.calls.length, calls)
  t.equal(lease().spec?.holderIdentity, 'one')
  t.equal(clock.pending, 0)
})

await t.test('a renewal that stopping cuts short asks and says nothing more', async (t) => {
  const { client, clock, pass } = rig()
  const warned: string[] = []
  const log = { ...silentLogger, warn: (message: string) => void warned.push(message) }
  const one = candidate({ client, clock, identity: 'one', log })
  one.election.start()
  await pass(1000)
  const cut = Promise.withResolvers<never>()
  client.onCall = ({ verb }) => (verb === 'replace' ? cut.promise : undefined)
  await pass(1500)
  const calls = client.calls.length
  client.onCall = undefined
  one.election.stop()
  cut.reject(kubeError(0, 'NoConnection'))
  await settle()
  t.equal(client.calls.length, calls)
  t.same(warned, [])
})

await t.test('a release that fails does no harm, and times must fit one another', async (t) => {
  const { client, clock, pass } = rig()
  const one = candidate({ client, clock, identity: 'one' })
  one.election.start()
  await pass(4000)
  client.onCall = () => {
    throw kubeError(500, 'InternalError')
  }
  await one.election.release()
  t.equal(one.election.isLeader, false)
  const options = {
    client,
    key: KEY,
    identity: 'x',
    log: silentLogger,
    metrics: testMetrics().runtime,
    onTaken: () => {},
    onLost: () => {},
  }
  t.throws(() => new LeaderElection({ ...options, leaseMs: 10_000 }), /last longer/)
  t.throws(() => new LeaderElection({ ...options, retryMs: 9_000 }), /second try/)
})
