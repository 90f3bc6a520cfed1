import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { cacheFolder } from '../../scripts/setup/cache-folder.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { findGo, goEnvironment, OLDEST_GO } from '../../scripts/setup/go.mjs'
import { buildOnce, goBuild, goInstall, moduleFolder } from '../../scripts/setup/go-build.mjs'
import { SOURCES as KUBERNETES, kubernetesVersion } from '../../scripts/setup/kube-binaries.mjs'
import { writeImage } from './oci-image.mjs'

const PROGRAMS = join(import.meta.dirname, 'programs')
const TRAEFIK = '3.6.12'
const VERSITYGW = '1.8.0'
/** That of Traefik. */
const GATEWAY_API = 'sigs.k8s.io/gateway-api@v1.4.0'
/** The ACME library of Traefik: without its DNS providers a third of all packages need not be compiled. */
const LEGO = 'github.com/go-acme/lego/v4@v4.33.0'

/** The programs that a cluster needs beside those of `npm test`; each is built on its own, and anew only if its inputs change. */
const BUILDS = {
  /** Programs of the same module as the API server, so that its packages are compiled once for both. */
  node: {
    inputs: [join(PROGRAMS, 'node'), join(KUBERNETES, 'go.mod'), join(KUBERNETES, 'go.sum')],
    build: buildNode,
  },
  coredns: {
    inputs: [join(PROGRAMS, 'coredns')],
    build: async (go, o) => {
      const coredns = join(o.source, 'coredns.bin')
      await goBuild(go, { ...o, cwd: o.source, what: 'CoreDNS', out: coredns, packages: ['.'] })
      packProgram(o.out, 'coredns', coredns)
    },
  },
  traefik: {
    inputs: [join(PROGRAMS, 'traefik')],
    version: [TRAEFIK, LEGO],
    build: buildTraefik,
  },
  /** The custom resources of Gateway API. */
  'gateway-api': {
    inputs: [],
    version: GATEWAY_API,
    build: async (go, { source, out, env }) => {
      const module = await moduleFolder(go, { cwd: source, env, module: GATEWAY_API })
      const crds = join(module, 'config', 'crd', 'standard')
      for (const name of readdirSync(crds).filter((file) => /^gateway\..*\.yaml$/.test(file))) {
        copyFileSync(join(crds, name), join(out, name))
      }
    },
  },
  /** A server of S3 over a folder. */
  versitygw: {
    inputs: [],
    version: VERSITYGW,
    build: buildVersitygw,
  },
}

/**
 * Folders with what a cluster of one node consists of: `node` (kubelet, kube-proxy, the plugins of devices, probe; pause.tar
 * and probe.tar), `coredns`, `traefik` and `versitygw` (images), `gateway-api` (manifests). Each is built from Go modules if it is not
 * in the cache folder; with nothing compiled before, in some 20 minutes of two cores for all.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 * @returns {Promise<Record<keyof typeof BUILDS, string>>}
 * @throws SetupFailure if one must be built and cannot be.
 */
export async function ensureClusterPrograms({ env = process.env, say = console.error } = {}) {
  const folders = {}
  // One after the other: each takes all cores.
  for (const name of Object.keys(BUILDS)) folders[name] = await ensureBuilt(name, { env, say })
  return folders
}

/** Which of them are not in the cache folder. */
export function missingPrograms(env = process.env) {
  return Object.keys(BUILDS).filter((name) => !existsSync(folderOf(name, env)))
}

function folderOf(name, env) {
  const { inputs, version } = BUILDS[name]
  return join(cacheFolder(env), `cluster-${name}-${digest(inputs, version)}`)
}

async function ensureBuilt(name, { env, say }) {
  const { inputs, build } = BUILDS[name]
  const folder = folderOf(name, env)
  await buildOnce(folder, { what: `${name} from its Go module`, say }, (o) => {
    const go = findGo(env)
    if (go.path === undefined) {
      throw new SetupFailure(`${name} is built with Go ${OLDEST_GO} or newer, and ${go.reason}.`)
    }
    for (const input of inputs) {
      const to = isFile(input) ? join(o.source, basename(input)) : o.source
      cpSync(input, to, { recursive: true })
    }
    return build(go.path, { ...o, env: goEnvironment(env) })
  })
  return folder
}

function digest(inputs, version) {
  const hash = createHash('sha256')
  for (const file of inputs.flatMap(filesOf)) {
    hash.update(`${basename(file)}\0`).update(readFileSync(file))
  }
  hash.update(JSON.stringify([version ?? '']))
  return `${hash.digest('hex').slice(0, 16)}-${process.platform}-${process.arch}`
}

const isFile = (input) => /\.(mod|sum)$/.test(input)

function filesOf(input) {
  if (isFile(input)) return [input]
  const entries = readdirSync(input, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
}

async function buildNode(go, { source, out, env }) {
  await goBuild(go, {
    cwd: source,
    env,
    what: 'kubelet and kube-proxy',
    out: `${out}/`,
    packages: ['.', './pause', './probe'],
    values: kubernetesVersion(),
  })
  const program = join(out, 'node')
  renameSync(join(out, 'kubernetes'), program)
  for (const name of ['kubelet', 'kube-proxy', 'fake-device-plugin', 'fake-dra-plugin']) {
    symlinkSync('node', join(out, name))
  }
  for (const name of ['pause', 'probe']) packProgram(out, name, join(out, name))
  rmSync(join(out, 'pause'))
}

async function buildTraefik(go, { source, out, env }) {
  const lego = join(source, 'lego')
  cpSync(await moduleFolder(go, { cwd: source, env, module: LEGO }), lego, { recursive: true })
  const providers = join(lego, 'providers', 'dns', 'zz_gen_dns_providers.go')
  // Go keeps its modules read-only.
  rmSync(providers)
  cpSync(join(source, 'no-dns-providers.go.txt'), providers)
  const traefik = join(source, 'traefik.bin')
  await goBuild(go, {
    cwd: source,
    env,
    what: 'Traefik',
    out: traefik,
    packages: ['github.com/traefik/traefik/v3/cmd/traefik'],
    values: { 'github.com/traefik/traefik/v3/pkg/version.Version': TRAEFIK },
  })
  packProgram(out, 'traefik', traefik, ['/tmp'])
}

async function buildVersitygw(go, { source, out, env }) {
  const module = `github.com/versity/versitygw/cmd/versitygw@v${VERSITYGW}`
  await goInstall(go, { cwd: source, env: { ...env, GOBIN: source }, module })
  packProgram(out, 'versitygw', join(source, 'versitygw'), ['/tmp', '/data'])
}

/** Makes NAME.tar, the image `localhost/NAME:test` that runs a program. @param folders - as of `writeImage`. */
function packProgram(out, name, program, folders = []) {
  const path = `/${name}`
  const image = { name: `localhost/${name}:test`, files: { [path]: program }, folders }
  writeImage(join(out, `${name}.tar`), { ...image, entrypoint: [path] })
}
