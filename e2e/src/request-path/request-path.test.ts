// needs: nats
import { startNatsServer } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { BASIC, SKIP } from '../processes/harness.ts'
import { ROOT } from '../serving.ts'
import { linesOf } from './inspected-process.ts'
import { type PathOptions, pathInOneProcess, pathOverNats } from './measure.ts'

t.setTimeout(120_000)

/**
 * What a ModelInfer to an ensemble of three steps may execute: lower them with every step towards a shorter path. Over NATS a
 * tick of the clock may meet the call, which adds a file.
 */
const IN_ONE_PROCESS = { files: 50, lines: 7200 }
const MORE_OVER_NATS = { files: 14, lines: 2600 }

await t.test('the way of a request is as short as it was', { skip: SKIP }, async (t) => {
  const options: PathOptions = {
    root: ROOT.replace(/\/$/, ''),
    repository: BASIC,
    model: 'ens_branch_join',
    teardown: (stop) => t.teardown(stop),
  }
  const inOneProcess = await pathInOneProcess(options)
  check(t, 'in one process', inOneProcess, IN_ONE_PROCESS)

  const broker = await startNatsServer()
  t.teardown(() => broker.stop())
  const overNats = await pathOverNats(options, broker.url)
  const more = overNats.filter((file) => !inOneProcess.includes(file))
  check(t, 'more over NATS', more, MORE_OVER_NATS)
})

function check(t: Test, name: string, files: readonly string[], most: typeof MORE_OVER_NATS): void {
  const lines = files.reduce((sum, file) => sum + linesOf(`${ROOT}${file}`), 0)
  t.comment(`${name}: ${files.length} files, ${lines} lines: ${files.join(' ')}`)
  t.ok(files.length > 5, `${name}: a request executes ${files.length} files`)
  t.ok(files.length <= most.files, `${name}: got ${files.length} files, want at most ${most.files}`)
  t.ok(lines <= most.lines, `${name}: got ${lines} lines, want at most ${most.lines}`)
}
