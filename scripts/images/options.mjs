import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cacheFolder } from '../setup/cache-folder.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { IMAGES, USUAL_IMAGES } from './catalogue.mjs'
import { ENGINES } from './engine.mjs'
import { CLUSTERS } from './load.mjs'

/** Whole, for buildah guesses no registry. */
export const PUBLIC_BASE = 'docker.io/library/node:24-bookworm-slim'

export const USAGE = `usage: npm run images -- [FLAGS]

Builds the container images of Tutti, checks their size and leaves them as OCI archives.

  --only NAME        this image; several may be given: ${Object.keys(IMAGES).join(', ')}
                     (default: ${USUAL_IMAGES.join(', ')})
  --base IMAGE       what images are built on (default ${PUBLIC_BASE})
  --make-base        make a base from packages of Debian and npm instead: root, with mmdebstrap
  --cuda-base IMAGE  what images for GPUs are built on
  --platform OS/ARCH linux/amd64 or linux/arm64 (default: this machine's)
  --registry HOST    first part of the names (default docker.io)
  --tag TAG          last part of the names (default: the version)
  --source URL       where the sources are, for a label (default: the origin of the checkout)
  --out FOLDER       where NAME.tar are left (default: images/ in the cache folder)
  --engine NAME      docker or buildah (default: the first that works)
  --skip-build       take the archives that are there
  --load CLUSTER     kind or k3s: load the archives there
  --kind-name NAME   the kind cluster (default kind)
  --check            run the programs of the images as a pod would: buildah and root, or docker
`

const OPTIONS = {
  only: { type: 'string', multiple: true, default: [] },
  base: { type: 'string' },
  'make-base': { type: 'boolean', default: false },
  'cuda-base': { type: 'string' },
  platform: { type: 'string' },
  registry: { type: 'string', default: 'docker.io' },
  tag: { type: 'string' },
  source: { type: 'string' },
  out: { type: 'string' },
  engine: { type: 'string' },
  'skip-build': { type: 'boolean', default: false },
  load: { type: 'string' },
  'kind-name': { type: 'string', default: 'kind' },
  check: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
}

/**
 * @param {readonly string[]} argv - what follows the script's name.
 * @param {{ version: string, env?: NodeJS.ProcessEnv }} o - the version is the default tag.
 * @throws SetupFailure that says what was got and what is wanted.
 */
export function parseOptions(argv, { version, env = process.env }) {
  const values = parseFlags(argv)
  const names = values.only.length > 0 ? [...new Set(values.only)] : USUAL_IMAGES
  for (const name of names) checkIn('--only', name, Object.keys(IMAGES))
  if (values.load !== undefined) checkIn('--load', values.load, Object.keys(CLUSTERS))
  if (values.engine !== undefined) checkIn('--engine', values.engine, ENGINES)
  if (values['make-base'] && values.base !== undefined) {
    throw new SetupFailure('--make-base and --base exclude each other.')
  }
  return {
    names,
    base: values.base ?? PUBLIC_BASE,
    makesBase: values['make-base'],
    cudaBase: values['cuda-base'],
    platform: values.platform,
    registry: values.registry,
    tag: values.tag ?? version,
    source: values.source,
    out: values.out ?? join(cacheFolder(env), 'images'),
    engine: values.engine,
    builds: !values['skip-build'],
    cluster: values.load,
    kindName: values['kind-name'],
    checks: values.check,
    help: values.help,
  }
}

function parseFlags(args) {
  try {
    return parseArgs({ args, options: OPTIONS }).values
  } catch (error) {
    throw new SetupFailure(`${error.message}\n\n${USAGE}`)
  }
}

function checkIn(flag, value, known) {
  if (known.includes(value)) return
  throw new SetupFailure(`${flag} ${value}: want one of ${known.join(', ')}.`)
}
