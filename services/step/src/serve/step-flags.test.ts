import t from 'tap'
import { STEP_FLAGS } from './step-flags.ts'

await t.test('no flag takes a secret', async (t) => {
  for (const name of Object.keys(STEP_FLAGS)) {
    t.notMatch(name, /(password|token|creds|nkey|secret)$/, `${name} names a file`)
  }
})
