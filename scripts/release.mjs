// The steps of a release: npm run release -- --help
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { releaseNotes } from './release/check.mjs'
import { parseOptions, USAGE } from './release/options.mjs'
import { packChart, writeExample } from './release/pack.mjs'
import { notePublished, pushChart, pushImages } from './release/push.mjs'
import { signRelease } from './release/sign.mjs'
import { setVersion } from './release/version.mjs'
import { runChild } from './setup/child.mjs'
import { runScript, SetupFailure } from './setup/failure.mjs'
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
  'publish-npm': publishPackage,
}

await runScript(async () => {
  const options = parseOptions(process.argv.slice(2), process.env.INIT_CWD ?? process.cwd())
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await COMMANDS[options.command]({ ...options, root, version })
  return 0
})

/** A version like 1.0.0-rc.1 does not become what `npm install` takes by itself. */
async function publishPackage({ version, out, isDryRun }) {
  const { command, args } = findNpm()
  const tarball = join(out, `tutti-${version}.tgz`)
  const tag = version.includes('-') ? 'next' : 'latest'
  const flags = [
    '--access=public',
    `--tag=${tag}`,
    ...(isDryRun ? ['--dry-run'] : ['--provenance']),
  ]
  const code = await runChild(command, [...args, 'publish', tarball, ...flags])
  if (code !== 0) throw new SetupFailure(`npm publish failed with exit code ${code}.`)
}
