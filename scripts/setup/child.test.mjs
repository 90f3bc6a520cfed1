import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { firstLine, runChild, runQuietly } from './child.mjs'

const NODE = process.execPath

await test('the exit code is the program’s, or 128 and the signal that ended it', async (t) => {
  t.equal(await runChild(NODE, ['-e', 'process.exit(7)']), 7)
  t.equal(await runChild(NODE, ['-e', 'process.kill(process.pid, "SIGKILL")']), 137)
  await t.rejects(runChild('/nonexistent/program', []), { code: 'ENOENT' })
})

await test('a quiet program is heard only when it fails', async (t) => {
  await runQuietly('It', NODE, ['-e', 'console.log("noise")'])
  await t.rejects(runQuietly('It', NODE, ['-e', 'console.error("why"); process.exit(2)']), {
    message: 'why\n\nIt failed with exit code 2.',
  })
})

/** A program that says a line and ends when a file is there. */
const WAITS = `console.log('first'); console.log('Collecting \\u001b[31mx')
  setInterval(() => require('node:fs').existsSync(process.argv[1]) && process.exit(0), 10)`

await test('what takes long shows its time and its last line', async (t) => {
  for (const isTTY of [false, true]) {
    const { TERM } = process.env
    t.teardown(() => {
      if (TERM === undefined) delete process.env.TERM
      else process.env.TERM = TERM
    })
    process.env.TERM = 'xterm'
    const clear = '\r\u001b[K'
    const end = join(t.testdir(), 'end')
    let said = ''
    const write = (text) => {
      said += text
      if (text.includes('Collecting')) writeFileSync(end, '')
    }
    const out = { isTTY, columns: 80, write }
    await runQuietly('It', NODE, ['-e', WAITS, end], {}, { out, everyMs: 20 })
    const text = said.replaceAll(clear, '')
    t.match(text, isTTY ? /It: \d s {2}Collecting \[31mx\r/ : /^It: \d s {2}Collecting \[31mx$/m)
    t.match(text, isTTY ? /\rIt: done in \d s\n$/ : /\nIt: done in \d s\n$/)
    t.equal(said.includes(clear), isTTY)
    t.equal(said.includes('\r'), isTTY)
  }
})

await test('the first line of a program, or nothing', async (t) => {
  t.equal(firstLine(NODE, ['-p', '"a\\nb"']), 'a')
  t.equal(firstLine(NODE, ['-e', 'process.exit(1)']), undefined)
  t.equal(firstLine('/nonexistent/program', []), undefined)
})

await test('a signal for one that leads a group ends what it has started, too', async (t) => {
  const grandchild = 'console.log("up"); setInterval(() => {}, 1000)'
  // As tap does: it takes no notice itself, and waits for what it has started.
  const inner = `
    process.on('SIGTERM', () => {})
    require('node:child_process')
      .spawn(process.execPath, ['-e', ${JSON.stringify(grandchild)}], { stdio: 'inherit' })
      .on('exit', (code, signal) => process.exit(signal === 'SIGTERM' ? 6 : 1))`
  const outer = `
    import { runChild } from ${JSON.stringify(import.meta.resolve('./child.mjs'))}
    const options = { detached: true }
    process.exitCode = await runChild(process.execPath, ['-e', ${JSON.stringify(inner)}], options)`
  t.equal(await endByTerm(t, outer), 6)
})

/** Starts a program, tells it to end once it has said something, and gives its exit code. */
async function endByTerm(t, program) {
  const started = spawn(NODE, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => started.kill('SIGKILL'))
  await once(started.stdout, 'data')
  started.kill('SIGTERM')
  const [code] = await once(started, 'exit')
  return code
}
