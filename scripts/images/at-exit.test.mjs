import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { test } from 'tap'

/** Starts a pod that would stay, says that it runs, and waits. */
const PROGRAM = `
  import { atExit, exitOnSignals } from '${new URL('at-exit.mjs', import.meta.url)}'
  import { startPod } from '${new URL('pod-runner.mjs', import.meta.url)}'
  exitOnSignals()
  const off = atExit(() => console.log('called off'))
  atExit(() => console.log('first'))
  atExit(() => console.log('last'))
  off()
  const pod = startPod(['sh', '-c', 'echo $$; exec sleep 600'])
  const timer = setInterval(() => {
    if (pod.written() === '') return
    clearInterval(timer)
    console.error(pod.written())
    setInterval(() => {}, 1000)
  }, 5)`

const skip = process.platform !== 'linux' && 'there is no /proc'

await test('a signal undoes what was not called off, pods too', { skip }, async (t) => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM])
  const written = text(child.stdout)
  const ended = once(child, 'exit')
  const [line] = await once(child.stderr, 'data')
  const pod = Number(String(line).trim())
  t.doesNotThrow(() => process.kill(pod, 0))
  child.kill('SIGTERM')
  t.same(await ended, [143, null])
  t.equal(await written, 'last\nfirst\n')
  while (isThere(pod)) await new Promise((resolve) => setImmediate(resolve))
})

/** Not one that has ended and nobody has waited for. */
function isThere(pid) {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
