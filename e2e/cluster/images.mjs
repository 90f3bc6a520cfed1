import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_IMAGES, referenceOf } from '../../scripts/images/catalogue.mjs'
import { cacheFolder } from '../../scripts/setup/cache-folder.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { writeImage } from './oci-image.mjs'

const PACKAGE = new URL('../../package.json', import.meta.url)
const { version: VERSION } = JSON.parse(readFileSync(PACKAGE, 'utf8'))

/** The archives of the images that `npm run images` has built. */
export function builtImages(env = process.env) {
  const folder = join(cacheFolder(env), 'images')
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((name) => name.endsWith('.tar'))
  return files.toSorted().map((name) => join(folder, name))
}

/**
 * The archive of an image with nats-server and what the chart's probes ask it with; `localhost/nats:test`.
 *
 * @param {string} natsServer - path of the program.
 * @param {string} probe - path of the program that is a wget too.
 */
export function makeNatsImage(natsServer, probe, env = process.env) {
  const folder = join(cacheFolder(env), 'cluster')
  const path = join(folder, 'nats.tar')
  mkdirSync(folder, { recursive: true })
  const files = { '/usr/local/bin/nats-server': natsServer, '/usr/bin/wget': probe }
  // It is written anew each time, within a second. A reader meanwhile has the whole earlier one.
  const unfinished = `${path}.${process.pid}`
  writeImage(unfinished, { name: 'localhost/nats:test', files, folders: ['/tmp'] })
  renameSync(unfinished, path)
  return path
}

/** Which of the images that the tests start are not on a node. */
export async function lackingImages(node) {
  const list = await node.run('ctr', '--namespace=k8s.io', 'images', 'list', '--quiet')
  const listed = list.split('\n')
  return DEFAULT_IMAGES.filter((name) => {
    return !listed.includes(referenceOf(name, { registry: 'docker.io', tag: VERSION }))
  })
}

/**
 * Puts images into a node, side by side: OCI archives, and those of `docker save` of docker 25 or newer.
 *
 * @param {import('./node.mjs').Node} node
 * @param {readonly string[]} archives - paths.
 * @throws SetupFailure if one is not there, or has no image with a name.
 */
export async function loadImages(node, archives, say) {
  await Promise.all(archives.map((archive) => loadImage(node, archive, say)))
}

async function loadImage(node, archive, say) {
  const images = (...args) => node.run('ctr', '--namespace=k8s.io', 'images', ...args)
  const names = namesIn(archive)
  if (names.length === 0) throw new SetupFailure(`${archive} has no image with a name.`)
  await images('import', archive)
  for (const name of names) {
    const full = fullName(name)
    // oxlint-disable no-await-in-loop -- of one archive
    if (full !== name) await images('tag', '--force', name, full)
    const other = anotherTag(full)
    if (other !== undefined) await images('tag', '--force', full, other)
    // oxlint-enable no-await-in-loop
    say(`loaded ${name}`)
  }
}

/** The same image of Tutti under a tag of its own, so that pods can be given what they take for another one. */
export function anotherTag(name) {
  const [repository, tag] = name.split(':')
  const isOurs = repository.startsWith('docker.io/tutti/') && tag === VERSION
  return isOurs ? `${repository}:next` : undefined
}

/** The names of the images of an archive. @throws SetupFailure if it is none. */
export function namesIn(archive) {
  const args = ['-xOf', archive, 'index.json']
  const { status, stdout, stderr } = spawnSync('tar', args, { encoding: 'utf8' })
  if (status !== 0) {
    throw new SetupFailure(`${archive}: want an archive in the layout of OCI; ${stderr.trim()}`)
  }
  return JSON.parse(stdout).manifests.flatMap(({ annotations = {} }) => {
    const name = annotations['io.containerd.image.name']
    return name ?? annotations['org.opencontainers.image.ref.name'] ?? []
  })
}

/** As a kubelet asks for an image: one without a registry is of Docker's. */
export function fullName(name) {
  const [first, ...rest] = name.split('/')
  if (rest.length === 0) return `docker.io/library/${name}`
  return /[.:]|^localhost$/.test(first) ? name : `docker.io/${name}`
}
