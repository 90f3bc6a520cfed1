import t from 'tap'
import { startProcess } from '../testing/start-process.ts'

const LEAVE = JSON.stringify(new URL('./leave.ts', import.meta.url).href)
const BUSY = "import('node:worker_threads').then((w) => { w.parentPort.postMessage(0); for (;;); })"

await t.test(
  'a process leaves with its code, without a word, although a thread is busy',
  async (t) => {
    for (const code of [0, 1, 143]) {
      const script = `
      import { Worker } from 'node:worker_threads'
      import { leave } from ${LEAVE}
      new Worker(${JSON.stringify(BUSY)}, { eval: true }).once('message', () => leave(${code}, true))
    `
      const started = await startProcess(process.execPath, [
        '--input-type=module',
        '--eval',
        script,
      ])
      t.teardown(() => started.stop('SIGKILL'))
      t.same(await started.exited, { code, signal: null })
      t.same(started.lines, [])
    }
  },
)
