import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createGunzip } from 'node:zlib'

/**
 * What an OCI archive says about its image.
 *
 * @param {string} archive - as `docker save` (25 or newer) and `buildah push` write it.
 * @returns {Promise<{ config: object, layers: { digest: string, diffId: string, isGzip: boolean }[] }>}
 */
export async function readImage(archive) {
  const { manifests } = await readJson(archive, 'index.json')
  const manifest = await readJson(archive, blobOf(manifests[0].digest))
  const config = await readJson(archive, blobOf(manifest.config.digest))
  const layers = manifest.layers.map(({ digest, mediaType }, index) => ({
    digest,
    diffId: config.rootfs.diff_ids[index],
    isGzip: mediaType.endsWith('gzip'),
  }))
  return { config, layers }
}

/**
 * The layers above a base.
 *
 * @param {readonly { diffId: string }[]} layers
 * @param {readonly string[]} base - the digests of the base's unpacked layers.
 * @throws Error if the image does not stand on it.
 */
export function layersAbove(layers, base) {
  if (!base.every((diffId, index) => layers[index]?.diffId === diffId)) {
    throw new Error('the image does not begin with the layers of its base')
  }
  return layers.slice(base.length)
}

/** Bytes of layers, unpacked. */
export async function unpackedBytes(archive, layers) {
  let total = 0
  for (const { digest, isGzip } of layers) {
    const blob = openEntry(archive, blobOf(digest))
    for await (const part of isGzip ? blob.stdout.pipe(createGunzip()) : blob.stdout) {
      total += part.length
    }
  }
  return total
}

async function readJson(archive, entry) {
  const child = openEntry(archive, entry)
  const ended = once(child, 'close')
  const parts = await child.stdout.toArray()
  const [code] = await ended
  if (code !== 0) throw new Error(`${archive} has no ${entry}: it is not an OCI archive`)
  return JSON.parse(Buffer.concat(parts).toString('utf8'))
}

function openEntry(archive, entry) {
  return spawn('tar', ['--extract', '--to-stdout', '--file', archive, entry], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

function blobOf(digest) {
  return `blobs/${digest.replace(':', '/')}`
}
