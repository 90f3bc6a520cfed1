import { testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { QUICK_CLASSES } from './attack-classes.ts'
import { attack, serveTarget } from './attack-round.ts'

t.setTimeout(0)

const COUNT = 2000
const SEED = testSeed()

for (const kind of QUICK_CLASSES) {
  await t.test(`${COUNT} attacks of the class ${kind} harm nobody else`, async (t) => {
    await attack(t, await serveTarget(t, kind), { kind, count: COUNT, seed: SEED })
  })
}
