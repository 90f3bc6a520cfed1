import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'

const BLOCK = 512
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar'
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' }

/**
 * Writes an image of one layer as an OCI archive, which containerd and buildah read, with neither a registry nor an engine.
 * The same files give the same archive.
 *
 * @param {string} path - of the archive.
 * @param {{ name: string, files: Record<string, string>, folders?: readonly string[], entrypoint?: readonly string[],
 *   user?: string }} image - `files` are executables: where they are in the image, and where here; `folders` can be written
 *   to by everybody.
 */
export function writeImage(path, { name, files, folders = [], entrypoint, user = '65532:65532' }) {
  const layer = toTar(layerEntries(files, folders))
  const config = toJson({
    architecture: ARCHITECTURES[process.arch],
    os: 'linux',
    config: { Entrypoint: entrypoint, User: user, Env: ['PATH=/usr/local/bin:/usr/bin:/bin'] },
    rootfs: { type: 'layers', diff_ids: [digest(layer)] },
  })
  const manifest = toJson({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: descriptor('application/vnd.oci.image.config.v1+json', config),
    layers: [descriptor(LAYER, layer)],
  })
  const annotations = { 'org.opencontainers.image.ref.name': name }
  const index = toJson({
    schemaVersion: 2,
    manifests: [{ ...descriptor(MANIFEST, manifest), annotations }],
  })
  const blobs = [layer, config, manifest].map((bytes) => {
    return { name: `blobs/${digest(bytes).replace(':', '/')}`, mode: 0o644, bytes }
  })
  const layout = toJson({ imageLayoutVersion: '1.0.0' })
  writeFileSync(
    path,
    toTar([
      { name: 'oci-layout', mode: 0o644, bytes: layout },
      { name: 'index.json', mode: 0o644, bytes: index },
      ...blobs,
    ]),
  )
}

function layerEntries(files, folders) {
  const parents = new Set()
  for (const to of [...Object.keys(files), ...folders]) addParents(parents, posix.dirname(to))
  return [
    ...[...parents].map((name) => ({ name: `${name}/`, mode: 0o755 })),
    ...folders.map((name) => ({ name: `${name.slice(1)}/`, mode: 0o1777 })),
    ...Object.entries(files).map(([to, from]) => {
      return { name: to.slice(1), mode: 0o755, bytes: readFileSync(from) }
    }),
  ]
}

function addParents(parents, folder) {
  if (folder === '/') return
  addParents(parents, posix.dirname(folder))
  parents.add(folder.slice(1))
}

/** Entries without bytes are folders. All belong to root, and are as old as can be. */
function toTar(entries) {
  const parts = entries.flatMap(({ name, mode, bytes }) => {
    const padding = Buffer.alloc((BLOCK - ((bytes?.length ?? 0) % BLOCK)) % BLOCK)
    return [toHeader(name, mode, bytes), bytes ?? Buffer.alloc(0), padding]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}

function toHeader(name, mode, bytes) {
  const header = Buffer.alloc(BLOCK)
  const octal = (value, at, digits) => header.write(value.toString(8).padStart(digits, '0'), at)
  header.write(name, 0)
  octal(mode, 100, 7)
  octal(0, 108, 7)
  octal(0, 116, 7)
  octal(bytes?.length ?? 0, 124, 11)
  octal(0, 136, 11)
  header.write(bytes === undefined ? '5' : '0', 156)
  header.write('ustar\u000000', 257)
  // The sum is taken with blanks in its own place.
  header.fill(' ', 148, 156)
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  )
  header[154] = 0
  return header
}

function toJson(value) {
  return Buffer.from(JSON.stringify(value))
}

function digest(bytes) {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

function descriptor(mediaType, bytes) {
  return { mediaType, digest: digest(bytes), size: bytes.length }
}
