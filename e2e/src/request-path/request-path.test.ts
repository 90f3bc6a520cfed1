// needs: nats
import { readFileSync } from 'node:fs'
import { startNatsServer } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { SKIP } from '../processes/harness.ts'
import { ROOT } from '../serving.ts'
import { pathInOneProcess, pathOverNats } from './measure.ts'

t.setTimeout(120_000)

/** A model whose last runs were not short is run on a thread. On a busy machine that may be any model. */
const ON_A_THREAD = ['run-threads', 'run-thread', 'thread-mailbox'].map(
  (name) => `services/backends/src/onnxruntime/${name}.ts`,
)

await t.test('a request executes the files of ARCHITECTURE.md', { skip: SKIP }, async (t) => {
  const inOneProcess = await pathInOneProcess(t)
  check(t, 'A request in one process', inOneProcess)

  const broker = await startNatsServer()
  t.teardown(() => broker.stop())
  const overNats = await pathOverNats(t, broker.url)
  const more = overNats.filter((file) => !inOneProcess.includes(file))
  check(t, 'A request over NATS', more)
})

/** The list is held true; the figures are printed, and bound nothing: a file has its subject, whatever they say. */
function check(t: Test, title: string, executed: readonly string[]): void {
  const files = executed.filter((file) => !ON_A_THREAD.includes(file))
  const lines = files.reduce((sum, file) => sum + linesOf(file), 0)
  t.comment(`${title}: ${files.length} files, ${lines} lines: ${files.join(' ')}`)
  const listed = listedUnder(title)
  const problems = [
    ...files.filter((file) => !listed.includes(file)).map((file) => `${file}: not listed`),
    ...listed.filter((file) => !files.includes(file)).map((file) => `${file}: not executed`),
  ]
  t.same(problems, [], `ARCHITECTURE.md, "${title}"`)
}

/** The files that a chapter of ARCHITECTURE.md lists. */
function listedUnder(title: string): readonly string[] {
  const [, ...chapters] = readFileSync(`${ROOT}ARCHITECTURE.md`, 'utf8').split('\n## ')
  const chapter = chapters.find((text) => text.startsWith(`${title}\n`)) ?? ''
  return [...chapter.matchAll(/^- `([^`]+)`/gm)].map(([, file]) => file ?? '')
}

/** The lines of a file, comments and blanks too. */
function linesOf(file: string): number {
  return readFileSync(`${ROOT}${file}`, 'utf8').split('\n').length - 1
}
