// The steps of a release: npm run release -- --help
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { releaseNotes } from './release/check.mjs'
import { parseOptions, USAGE } from './release/options.mjs'
import { packChart, writeExample } from './release/pack.mjs'
import { publishPackage } from './release/publish.mjs'
import { notePublished, pushChart, pushImages } from './release/push.mjs'
import { signRelease } from './release/sign.mjs'
import { setVersion } from './release/version.mjs'
import { runScript } from './setup/failure.mjs'
import { findNpm } from './setup/install.mjs'
import { ensureReleaseProgram, findHelm } from './setup/release-programs.mjs'

const root = resolve(import.meta.dirname, '..')

const COMMANDS = {
  help: () => console.log(USAGE),
  version: ({ argument }) => {
    for (const path of setVersion(root, argument)) console.log(path)
    console.error('Now: npm run gen, and a section of CHANGELOG.md')
  },
  check: ({ argument, version, out }) => {
    const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
    const notes = releaseNotes({ tag: argument, version, changelog })
    mkdirSync(out, { recursive: true })
    writeFileSync(join(out, 'NOTES.md'), notes)
  },
  pack: async (release) => {
    await packChart(release, findHelm())
    writeExample(release)
  },
  push: async (release) => {
    const oras = await ensureReleaseProgram('oras')
    mkdirSync(release.out, { recursive: true })
    const images = await pushImages(release, oras)
    const all = [...images, ...(await pushChart(release, { helm: findHelm(), oras }))]
    notePublished(release, all)
    for (const { reference } of all) console.log(reference)
  },
  sign: async (release) => signRelease(release, await ensureReleaseProgram('cosign')),
  'publish-npm': (release) => publishPackage(release, findNpm()),
}

await runScript(async () => {
  const options = parseOptions(process.argv.slice(2), process.env.INIT_CWD ?? process.cwd())
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await COMMANDS[options.command]({ ...options, root, version })
  return 0
})
