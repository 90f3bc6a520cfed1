import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cacheFolder } from '../setup/cache-folder.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { CUDA_IMAGES, DEFAULT_IMAGES, IMAGES } from './catalogue.mjs'
import { CLUSTERS, ENGINES } from './engine.mjs'

export const USAGE = `usage: npm run images -- [FLAGS]

Builds the container images of Tutti, checks them and leaves them as OCI archives.

  --only NAME            this image; several may be given: ${Object.keys(IMAGES).join(', ')}
                         (default: ${DEFAULT_IMAGES.join(', ')})
  --cuda                 those for GPUs, ${CUDA_IMAGES.join(' and ')}, with CUDA from PyPI
  --build-arg NAME=VALUE an ARG of images/Dockerfile, BASE say; several may be given
  --make-base            make NODE and BASE from packages of Debian and npm: root, with mmdebstrap
  --no-cache             build every layer anew, with the packages that Debian has today
  --platform OS/ARCH     linux/amd64 or linux/arm64 (default: this machine's)
  --registry HOST        first part of the names (default docker.io)
  --tag TAG              last part of the names (default: the version)
  --out FOLDER           where NAME.tar are left (default: images/ in the cache folder)
  --engine NAME          docker or buildah (default: the first that works)
  --load CLUSTER         kind or k3s: load the archives there
  --kind-name NAME       the kind cluster (default kind)
`

const OPTIONS = {
  only: { type: 'string', multiple: true, default: [] },
  cuda: { type: 'boolean', default: false },
  'build-arg': { type: 'string', multiple: true, default: [] },
  'make-base': { type: 'boolean', default: false },
  'no-cache': { type: 'boolean', default: false },
  platform: { type: 'string' },
  registry: { type: 'string', default: 'docker.io' },
  tag: { type: 'string' },
  out: { type: 'string' },
  engine: { type: 'string' },
  load: { type: 'string' },
  'kind-name': { type: 'string', default: 'kind' },
  help: { type: 'boolean', default: false },
}

/**
 * @param {readonly string[]} argv - what follows the script's name.
 * @param {{ version: string, env?: NodeJS.ProcessEnv }} o - the version is the default tag.
 * @throws SetupFailure that says what was got and what is wanted.
 */
export function parseOptions(argv, { version, env = process.env }) {
  const values = parseFlags(argv)
  const usual = values.cuda ? CUDA_IMAGES : DEFAULT_IMAGES
  const names = values.only.length > 0 ? [...new Set(values.only)] : usual
  for (const name of names) checkIn('--only', name, Object.keys(IMAGES))
  if (values.load !== undefined) checkIn('--load', values.load, Object.keys(CLUSTERS))
  if (values.engine !== undefined) checkIn('--engine', values.engine, ENGINES)
  return {
    names,
    buildArgs: Object.fromEntries(values['build-arg'].map(parseBuildArg)),
    makesBase: values['make-base'],
    noCache: values['no-cache'],
    platform: values.platform,
    registry: values.registry,
    tag: values.tag ?? version,
    out: values.out ?? join(cacheFolder(env), 'images'),
    engine: values.engine,
    cluster: values.load,
    kindName: values['kind-name'],
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

function parseBuildArg(text) {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? []
  if (name === undefined) throw new SetupFailure(`--build-arg ${text}: want NAME=VALUE.`)
  return [name, value]
}

function checkIn(flag, value, known) {
  if (known.includes(value)) return
  throw new SetupFailure(`${flag} ${value}: want one of ${known.join(', ')}.`)
}
