// Installs and builds what is not, then runs a script, if one is named: node scripts/with-setup.mjs [SCRIPT [arguments]]
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runChild } from './setup/child.mjs'
import { runScript } from './setup/failure.mjs'
import { ensureBuilt, ensureInstalled } from './setup/install.mjs'
import { withLock } from './setup/lock.mjs'
import { checkSystemNode, findNode24, toolEnvironment } from './setup/node-24.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

await runScript(async () => {
  const [script, ...args] = process.argv.slice(2)
  checkSystemNode()
  await withLock(
    // Not in node_modules, which npm ci deletes.
    join(root, '.tap', 'setup.lock'),
    async () => {
      await ensureInstalled(root)
      await ensureBuilt(root, findNode24(root))
    },
    () => console.error('Waiting for another run to finish its setup ...'),
  )
  if (script === undefined) return 0
  return await runChild(findNode24(root), [resolve(root, script), ...args], {
    cwd: root,
    env: toolEnvironment(root),
    stdio: 'inherit',
  })
})
