// needs: nats, python, redis
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DIRECT_KINDS } from './direct-flags.ts'
import { SKIP } from './harness.ts'

t.setTimeout(0)

const EXTENSION = import.meta.filename.endsWith('.ts') ? 'ts' : 'js'

/** Those that harm what is between routers and steps, or depend on its order. */
const SUITES = [
  'history.test',
  'replica-faults.test',
  'hostile-members.test',
  'revisions.test',
  'sequences.test',
  'behaviour.test',
  'stopping.test',
  'comparison.test',
]

for (const kind of DIRECT_KINDS) {
  if (kind === 'off') continue
  for (const suite of SUITES) {
    const file = fileURLToPath(import.meta.resolve(`./${suite}.${EXTENSION}`))
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await t.spawn(
      process.execPath,
      [file],
      {
        // Each suite once as long as for a change: there are many.
        env: { ...process.env, TUTTI_DIRECT: kind, TUTTI_TEST_FACTOR: '1' },
        skip: SKIP,
        timeout: 900_000,
      },
      `${suite} over ${kind}`,
    )
  }
}
