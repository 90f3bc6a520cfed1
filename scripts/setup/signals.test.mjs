import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { withSignals } from './signals.mjs'

/** Starts a program that says on stderr when it works; `atEnd` is what it does once it is aborted. */
async function startWork(atEnd) {
  const program = `
    import { once } from 'node:events'
    import { setImmediate as turn } from 'node:timers/promises'
    import { withSignals } from '${new URL('signals.mjs', import.meta.url)}'
    const staysAlive = setInterval(() => {}, 1000)
    await withSignals(async (signal) => {
      const aborted = once(signal, 'abort')
      console.error('at work')
      await aborted
      ${atEnd}
    }).catch((error) => console.log(error.message))
    clearInterval(staysAlive)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  const ended = once(child, 'exit')
  await once(child.stderr, 'data')
  return { child, ended }
}

await test('a signal aborts the work, which ends in its own time', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const { child, ended } = await startWork(`
      console.log('cleaned up')
      signal.throwIfAborted()`)
    const written = text(child.stdout)
    child.kill(signal)
    t.same(await ended, [0, null])
    t.equal(await written, `cleaned up\nStopped by ${signal}.\n`)
  }
})

await test('the work ends in order though its reader has gone', async (t) => {
  const { child, ended } = await startWork(`
      for (let i = 0; i < 5; i++) {
        console.log('not read')
        await turn()
      }
      process.exitCode = 5`)
  const closed = once(child.stdout, 'close')
  child.stdout.destroy()
  await closed
  child.kill('SIGTERM')
  t.same(await ended, [5, null])
})

await test('the work gives what it gives, and signals are as before', async (t) => {
  const before = process.listenerCount('SIGHUP')
  const isAborted = await withSignals(async (signal) => {
    t.equal(process.listenerCount('SIGHUP'), before + 1)
    return signal.aborted
  })
  t.equal(isAborted, false)
  t.equal(process.listenerCount('SIGHUP'), before)
})
