import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'

await test('an installation that is stopped leaves nothing in the cache', async (t) => {
  const folder = t.testdir({
    bin: {},
    cache: {},
    'package.json': JSON.stringify({ type: 'module', config: { node: '24.0.0' } }),
    // Says that it has begun, and goes on for ever.
    'npm-cli.js': `
      import { mkdirSync, writeFileSync } from 'node:fs'
      const folder = process.argv.find((one) => one.startsWith('--prefix=')).slice('--prefix='.length)
      mkdirSync(folder + '/node_modules')
      writeFileSync(folder + '/node_modules/half', '')
      process.kill(process.ppid, 'SIGTERM')
      setInterval(() => {}, 1000)`,
  })
  copyFileSync(join(import.meta.dirname, 'node-24.js'), join(folder, 'bin', 'node-24.js'))
  const script = "import('./bin/node-24.js').then(({ ensureNode }) => ensureNode())"
  const env = {
    ...process.env,
    XDG_CACHE_HOME: join(folder, 'cache'),
    npm_execpath: join(folder, 'npm-cli.js'),
  }
  const child = spawn(process.execPath, ['-e', script], { cwd: folder, env })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text))
  const [code] = await once(child, 'close')
  t.equal(code, 1)
  t.match(said, /could not be installed \(it was stopped\)/)
  t.same(readdirSync(join(folder, 'cache', 'tutti')), [])
})
