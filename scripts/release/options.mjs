import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { SetupFailure } from '../setup/failure.mjs'
import { HOME } from './home.mjs'

export const USAGE = `usage: npm run release -- COMMAND [FLAGS]

The steps of a release; .github/workflows/release.yaml runs them on a tag. docs/releases.md tells their order.

  version X.Y.Z          set the version everywhere
  check TAG              the tag is the version's, and CHANGELOG.md has its section, which goes to NOTES.md
  pack                   the chart and face.yaml, with the images of the registry
  push                   images, chart, and what Artifact Hub reads, to the registry
  sign                   what push has published, SBOMs, and the checksums of all files: with cosign
  publish-npm            the package that npm run package has left

  --out FOLDER           files of the release (default out/release)
  --registry REGISTRY    (default ${HOME.registry}, a placeholder: name your own)
  --source URL           of the repository (default ${HOME.source})
  --images FOLDER        push: where npm run images has left its archives; one for each platform
  --plain-http           push, sign: the registry speaks HTTP
  --key FILE             sign: a private key of cosign (default: keyless, by the identity of the workflow)
  --dry-run              publish-npm: publish nothing
`

const OPTIONS = {
  out: { type: 'string', default: 'out/release' },
  registry: { type: 'string', default: HOME.registry },
  source: { type: 'string', default: HOME.source },
  images: { type: 'string', multiple: true, default: [] },
  'plain-http': { type: 'boolean', default: false },
  key: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
}

/** Commands, with how many arguments each takes. */
const COMMANDS = { version: 1, check: 1, pack: 0, push: 0, sign: 0, 'publish-npm': 0 }
/** As references have it: no scheme, and each part of the path begins and ends with a letter or a digit. */
const REGISTRY = /^[a-z0-9]+([.-]+[a-z0-9]+)*(:\d+)?(\/[a-z0-9]+((\.|_{1,2}|-+)[a-z0-9]+)*)*$/i
const SOURCE = /^https:\/\/[\w.:-]+(\/[\w-][\w.-]*)+$/

/**
 * @param {readonly string[]} argv - what follows the script's name.
 * @param {string} cwd - relative paths begin there.
 * @throws SetupFailure that says what was got and what is wanted.
 */
export function parseOptions(argv, cwd) {
  const { values, positionals } = parse(argv)
  const [command, ...args] = positionals
  if (values.help) return { command: 'help' }
  if (!Object.hasOwn(COMMANDS, command ?? '') || args.length !== COMMANDS[command]) {
    throw new SetupFailure(`release ${positionals.join(' ')}: want a command.\n\n${USAGE}`)
  }
  const { registry } = values
  if (!REGISTRY.test(registry)) {
    throw new SetupFailure(`--registry ${String(registry)}: want HOST/PATH without a scheme.`)
  }
  if (!SOURCE.test(values.source)) {
    throw new SetupFailure(
      `--source ${String(values.source)}: want https://HOST/PATH of the repository.`,
    )
  }
  if (command === 'push' && values.images.length === 0) {
    throw new SetupFailure(
      'push: want --images FOLDER, where npm run images has left its archives.',
    )
  }
  return {
    command,
    argument: args[0],
    out: resolve(cwd, values.out),
    // Owners at GitHub may have capitals, references may not.
    registry: registry === HOME.registry ? registry : registry.toLowerCase(),
    source: values.source,
    images: values.images.map((folder) => resolve(cwd, folder)),
    isPlainHttp: values['plain-http'],
    key: values.key === undefined ? undefined : resolve(cwd, values.key),
    isDryRun: values['dry-run'],
  }
}

function parse(args) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new SetupFailure(`${error.message}\n\n${USAGE}`)
  }
}
