import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar'
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' }
/** Root's, as old as can be, and for all to read, whatever the umask is here: the same files give the same archive. */
const TAR = [
  '--sort=name',
  '--mtime=@0',
  '--owner=0',
  '--group=0',
  '--numeric-owner',
  '--mode=a+rX',
]

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
  const unfinished = mkdtempSync(`${path}-`)
  try {
    const root = join(unfinished, 'root')
    const layout = join(unfinished, 'layout')
    const blobs = join(layout, 'blobs', 'sha256')
    copyInto(root, { files, folders })
    mkdirSync(blobs, { recursive: true })
    const layerFile = join(unfinished, 'layer.tar')
    pack(layerFile, root)
    const layer = describe(LAYER, readFileSync(layerFile))
    renameSync(layerFile, join(blobs, layer.digest.slice('sha256:'.length)))
    const writeBlob = (mediaType, value) => {
      const bytes = Buffer.from(JSON.stringify(value))
      const described = describe(mediaType, bytes)
      writeFileSync(join(blobs, described.digest.slice('sha256:'.length)), bytes)
      return described
    }
    const config = writeBlob('application/vnd.oci.image.config.v1+json', {
      architecture: ARCHITECTURES[process.arch],
      os: 'linux',
      config: { Entrypoint: entrypoint, User: user, Env: ['PATH=/usr/local/bin:/usr/bin:/bin'] },
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    })
    const manifest = { schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] }
    const annotations = { 'org.opencontainers.image.ref.name': name }
    const manifests = [{ ...writeBlob(MANIFEST, manifest), annotations }]
    writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }))
    writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
    pack(path, layout)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
}

function copyInto(root, { files, folders }) {
  mkdirSync(root)
  for (const [to, from] of Object.entries(files)) {
    mkdirSync(dirname(join(root, to)), { recursive: true })
    copyFileSync(from, join(root, to))
    chmodSync(join(root, to), 0o755)
  }
  for (const folder of folders) {
    mkdirSync(join(root, folder), { recursive: true })
    chmodSync(join(root, folder), 0o1777)
  }
}

function pack(archive, folder) {
  const names = readdirSync(folder).toSorted()
  execFileSync('tar', ['--create', ...TAR, '--file', archive, '--directory', folder, ...names])
}

function describe(mediaType, bytes) {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  return { mediaType, digest, size: bytes.length }
}
