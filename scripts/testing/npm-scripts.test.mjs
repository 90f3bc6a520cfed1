import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'

const CHILD = new URL('../setup/child.mjs', import.meta.url).href

/** Stands for with-setup.mjs, which hands over to another Node in the same way. */
const INNER = `
  process.on('SIGTERM', () => { console.log('ends in order'); process.exit(0) })
  console.log('up')
  setInterval(() => {}, 1000)`
const SETUP = `
  import { runChild } from ${JSON.stringify(CHILD)}
  process.exitCode = await runChild(process.execPath, ['-e', ${JSON.stringify(INNER)}])`

await test('SIGTERM to npm ends what its scripts run, in order', async (t) => {
  const { scripts } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url)))
  const handedOver = Object.entries(scripts).filter(([, text]) => text.includes('with-setup'))
  t.ok(handedOver.length > 0)
  for (const [name, text] of handedOver) t.match(text, /^exec node /, `${name} leaves no shell`)
  const cwd = t.testdir({
    'package.json': JSON.stringify({ name: 'x', scripts: { tutti: scripts.tutti } }),
    scripts: { 'with-setup.mjs': SETUP },
  })
  const npm = spawn('npm', ['run', 'tutti', '--', 'serve'], { cwd })
  t.teardown(() => npm.kill('SIGKILL'))
  let written = ''
  for await (const text of npm.stdout.setEncoding('utf8')) {
    written += text
    if (/^up$/m.test(text)) npm.kill('SIGTERM')
  }
  const code = npm.exitCode ?? (await once(npm, 'exit'))[0]
  t.match(written, /ends in order/)
  t.equal(code, 0)
})
