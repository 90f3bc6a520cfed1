import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cacheFolder } from '../../scripts/setup/cache-folder.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { writeImage } from './oci-image.mjs'

/** The archives of the images that `npm run images` has built. */
export function builtImages(env = process.env) {
  const folder = join(cacheFolder(env), 'images')
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((name) => name.endsWith('.tar'))
  return files.toSorted().map((name) => join(folder, name))
}

/** Which of the images that the chart starts are not built. */
export function missingImages(env = process.env) {
  const found = builtImages(env).map((path) => basename(path, '.tar'))
  return ['operator', 'router', 'step'].filter((name) => !found.includes(name))
}

/**
 * The archive of an image with nats-server and what the chart's probes ask it with; `localhost/nats:test`.
 *
 * @param {string} natsServer - path of the program.
 * @param {string} probe - path of the program that is a wget too.
 */
export function ensureNatsImage(natsServer, probe, env = process.env) {
  const folder = join(cacheFolder(env), 'cluster')
  const path = join(folder, 'nats.tar')
  const isNewer = (file) => statSync(path).mtimeMs > statSync(file).ctimeMs
  if (existsSync(path) && [natsServer, probe].every(isNewer)) return path
  mkdirSync(folder, { recursive: true })
  const files = { '/usr/local/bin/nats-server': natsServer, '/usr/bin/wget': probe }
  writeImage(`${path}.new`, { name: 'localhost/nats:test', files, folders: ['/tmp'] })
  renameSync(`${path}.new`, path)
  return path
}

/**
 * Puts images into a node: OCI archives, or those of `docker save`.
 *
 * @param {import('./node.mjs').Node} node
 * @param {readonly string[]} archives - paths.
 * @throws SetupFailure if one has no image with a name.
 */
export function loadImages(node, archives, say) {
  for (const archive of archives) {
    const names = namesIn(archive)
    if (names.length === 0) throw new SetupFailure(`${archive} has no image with a name.`)
    node.run('ctr', '--namespace=k8s.io', 'images', 'import', archive)
    for (const name of names) {
      const full = fullName(name)
      if (full !== name) {
        node.run('ctr', '--namespace=k8s.io', 'images', 'tag', '--force', name, full)
      }
      say(`loaded ${name}`)
    }
  }
}

/** The names of the images of an archive. */
export function namesIn(archive) {
  const text = execFileSync('tar', ['-xOf', archive, 'index.json'], { encoding: 'utf8' })
  return JSON.parse(text).manifests.flatMap(({ annotations = {} }) => {
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
