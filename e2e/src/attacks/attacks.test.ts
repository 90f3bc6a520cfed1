import t from 'tap'
import { QUICK_CLASSES } from './attack-classes.ts'
import { attack, serveTarget } from './attack-round.ts'

t.setTimeout(300_000)

const COUNT = 60
/** The same ones each time; the nightly run tries others. */
const SEED = 15_000

await t.test('attacks of each class harm no other client', async (t) => {
  const serving = await serveTarget(t)
  for (const kind of QUICK_CLASSES) {
    await t.test(kind, async (t) => {
      const target = kind === 'held' ? await serveTarget(t, kind) : serving
      await attack(t, target, { kind, count: COUNT, seed: SEED })
    })
  }
})
