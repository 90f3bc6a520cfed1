// needs: registry
import t from 'tap'
import { publishRelease } from '../release/publish.ts'
import { withoutRegistry } from '../release/registry.ts'
import { kubectl, withoutTuttiImages } from './kubectl.ts'
import { helm, installFrom, KEPT, leftovers, removeAfter, SYSTEM, uninstall } from './release.ts'

t.setTimeout(1_200_000)

const skip = withoutTuttiImages() || withoutRegistry()

await t.test('the release', { skip }, async (t) => {
  removeAfter(t)

  await t.test('helm installs it from the registry that it was pushed to', async (t) => {
    const { prefix, registry } = await publishRelease(t)
    t.match(await installFrom(prefix, registry.env), /STATUS: deployed/)
  })

  await t.test('helm test serves an ensemble of two steps and asks it', async (t) => {
    t.match(await helm('test', 'tutti', '--timeout=5m'), /Phase: +Succeeded/)
    // Its Models are gone now. The operator deletes their Router, if it is not uninstalled before that.
    const routers = ['routers', '--all', `--namespace=${SYSTEM}`]
    await kubectl('wait', '--for=delete', '--timeout=60s', ...routers)
  })

  await t.test('helm uninstalls it, and only the keys of NATS stay', async (t) => {
    await uninstall()
    const pods = ['pods', '--all', `--namespace=${SYSTEM}`]
    await kubectl('wait', '--for=delete', '--timeout=300s', ...pods)
    t.same(await leftovers(), KEPT)
  })
})
