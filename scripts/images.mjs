// Builds the container images, checks and loads them: npm run images -- --help
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildImages, loadImages } from './images/build.mjs'
import { checkImages } from './images/check.mjs'
import { engineCommands, findEngine } from './images/engine.mjs'
import { parseOptions, USAGE } from './images/options.mjs'
import { cacheFolder } from './setup/cache-folder.mjs'
import { runScript } from './setup/failure.mjs'
import { withLock } from './setup/lock.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

await runScript(async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const options = parseOptions(process.argv.slice(2), { version })
  if (options.help) {
    console.log(USAGE)
    return 0
  }
  const folder = join(cacheFolder(), 'images')
  const engine = findEngine({ named: options.engine })
  const commands = engineCommands(engine, {
    store: join(folder, 'store'),
    isRoot: process.getuid?.() === 0,
  })
  const work = { root, folder, version, engine, commands, options }
  await withLock(
    join(folder, 'images.lock'),
    async () => {
      if (options.builds) await buildImages(work)
      if (options.checks) await checkImages(work)
      if (options.cluster !== undefined) await loadImages(work)
    },
    () => console.error('Waiting for another run to finish with its images ...'),
  )
  return 0
})
