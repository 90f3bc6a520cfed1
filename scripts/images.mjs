// Builds the container images, and loads them: npm run images -- --help
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buildImages, loadImages } from './images/build.mjs'
import { engineCommands, findEngine } from './images/engine.mjs'
import { parseOptions, USAGE } from './images/options.mjs'
import { cacheFolder } from './setup/cache-folder.mjs'
import { runScript } from './setup/failure.mjs'
import { withLock } from './setup/lock.mjs'

const root = resolve(import.meta.dirname, '..')

await runScript(async () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const options = parseOptions(process.argv.slice(2), manifest)
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
  const work = { root, folder, manifest, commands, options }
  await withLock(
    join(folder, 'images.lock'),
    async () => {
      await buildImages(work)
      if (options.cluster !== undefined) await loadImages(work)
    },
    () => console.error('Waiting for another run to finish with its images ...'),
  )
  return 0
})
