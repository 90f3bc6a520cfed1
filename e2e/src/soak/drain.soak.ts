import t from 'tap'
import { startLoad } from '../load.ts'
import { serve } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'

/** Long enough for some dozens of stops: a stop that cuts an answer off may do so one time in thirty. */
const DURATION_MS = 60_000
const LOAD = { clients: 16, bytes: 8 * 1024 * 1024 }

t.setTimeout(3_600_000)

await t.test('SIGTERM under heavy load, again and again', async (test) => {
  const repository = await copyModels(test, ['big_identity', 'versioned', 'ens_versioned'])
  const endsAt = performance.now() + DURATION_MS
  for (let round = 1; performance.now() < endsAt; round++) {
    const serving = await serve(test, { repositories: [repository] })
    const load = startLoad(test, serving, LOAD)
    await load.untilEachHas(round === 1 ? 20 : 1)
    serving.process.kill('SIGTERM')
    test.same(await load.ended, [], `round ${round}: ${load.complete} answers, all whole and right`)
    test.same(await serving.process.exited, { code: 0, signal: null })
  }
})
