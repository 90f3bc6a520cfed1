import { link, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { arch } from 'node:process'
import { ServeError } from '@tutti/errors'
import type { Fetched, FetchOptions } from './fetch-options.ts'
import { HttpClient, type HttpHeaders, type StreamedAnswer } from './http-get.ts'
import type { ImageAddress } from './image-address.ts'
import { downloadKnownFiles } from './known-file.ts'
import { type Descriptor, type Manifest, OciRegistry, toDescriptors } from './oci-registry.ts'
import { showUri } from './source-uri.ts'
import { invalidArtifact, TreePlan } from './tree-plan.ts'
import { onDisk } from './work-folder.ts'

/** Names of files that `oras push` and others write. */
const TITLE = 'org.opencontainers.image.title'
/** Says, with `true`, that a layer with a title is the tar archive of a folder. */
const UNPACK = 'io.deis.oras.content.unpack'
/** Media types of tar archives, by themselves, gzipped, or with zstd. */
const TAR = /[.+]tar([.+-](?<packing>gzip|gz|zstd))?$/
const EMPTY = 'application/vnd.oci.empty.v1+json'
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/**
 * Downloads the layers of an artifact or of an image, and puts together what they hold: tar archives are extracted, other layers
 * are files that have their name as title.
 *
 * @returns undefined if the tag is still the manifest of `options.validator`.
 */
export async function fetchOci(
  at: ImageAddress,
  options: FetchOptions,
): Promise<Fetched | undefined> {
  const { context, work, uri } = options
  const registry = new OciRegistry(at, context.credentials)
  const client = new HttpClient(context)
  const named = await registry.manifest(client, at.reference)
  if (named.digest === options.validator) return undefined
  const { members } = await chooseImage(registry, client, named)
  const layers = toDescriptors(members['layers']).filter(({ mediaType }) => mediaType !== EMPTY)
  if (layers.length === 0) {
    throw new ServeError('ARTIFACT_NOT_FOUND', `'${showUri(uri)}' is a manifest without layers`)
  }
  // Before anything is downloaded.
  const sizes = new TreePlan(context.bounds)
  for (const [i, { sizeBytes }] of layers.entries()) sizes.add('file', String(i), sizeBytes)
  const blobOf = ({ digest }: Descriptor): string => work.path(join('blobs', digest.slice(7)))
  const unique = new Map(layers.map((layer) => [layer.digest, layer])).values()
  const files = Array.from(unique, (layer) => ({
    to: blobOf(layer),
    name: layer.digest,
    sizeBytes: layer.sizeBytes,
    digest: { kind: 'sha256' as const, hex: layer.digest.slice(7) },
    get: (one: HttpClient, headers: HttpHeaders) => registry.blob(one, layer.digest, headers),
    refused: (answer: StreamedAnswer) => registry.refused(client, answer),
  }))
  await downloadKnownFiles(files, (attempt) => new HttpClient(attempt), options)
  try {
    const root = await putTogether(layers, { blobOf, path: at.path, options })
    return { root, validator: named.digest }
  } catch (error) {
    if (context.signal.aborted) throw error
    throw ServeError.from(error).withPrefix(`'${showUri(uri)}': `)
  }
}

/** Reads the manifest of this machine's image, if the address names an index. */
async function chooseImage(
  registry: OciRegistry,
  client: HttpClient,
  named: Manifest,
): Promise<Manifest> {
  if (named.members['manifests'] === undefined) return named
  const images = toDescriptors(named.members['manifests'])
  const own = `linux/${ARCHITECTURES[arch] ?? arch}`
  const found = images.length === 1 ? images[0] : images.find(({ platform }) => platform === own)
  if (found !== undefined) return await registry.manifest(client, found.digest)
  const platforms = images.map(({ platform }) => platform || 'none').join(', ')
  throw new ServeError('ARTIFACT_NOT_FOUND', `the index has ${platforms}, want ${own}`)
}

/** Puts the files of layers into a tree. @returns the model's own folder. */
async function putTogether(
  layers: readonly Descriptor[],
  {
    blobOf,
    path,
    options: { context, work },
  }: {
    readonly blobOf: (layer: Descriptor) => string
    readonly path: string
    readonly options: FetchOptions
  },
): Promise<string> {
  const tree = work.path('tree')
  const plan = new TreePlan(context.bounds)
  const isWanted = (name: string): boolean =>
    path === '' || name.replace(/^(\.\/+)+/, '').startsWith(`${path}/`)
  const archives: string[] = []
  for (const layer of layers) {
    const title = layer.annotations[TITLE]
    if (typeof title !== 'string' || layer.annotations[UNPACK] === 'true') {
      archives.push(toArchive(layer, blobOf(layer)))
    } else if (isWanted(title)) {
      const file = join(tree, plan.add('file', title, layer.sizeBytes))
      await onDisk(file, async () => {
        await mkdir(dirname(file), { recursive: true })
        await link(blobOf(layer), file)
      })
    }
  }
  const { extractArchives } = await import('./extract-archive.ts')
  const root = await extractArchives(archives, tree, {
    ...context,
    plan,
    isWanted,
    check: (name) => refuseDeletion(name, path),
  })
  if (plan.files > 0) return path === '' ? root : join(tree, path)
  const where = path === '' ? '' : ` below '${path}'`
  throw new ServeError('ARTIFACT_NOT_FOUND', `the layers have no files${where}`)
}

/** @throws ServeError ARTIFACT_INVALID for a layer that is no tar archive. */
function toArchive({ mediaType, annotations, digest }: Descriptor, blob: string): string {
  const tar = TAR.exec(mediaType)
  const isTar =
    (tar !== null || annotations[UNPACK] === 'true') && tar?.groups?.['packing'] !== 'zstd'
  if (isTar) return blob
  const want = `want a title (${TITLE}), or a tar archive, gzipped or not`
  throw invalidArtifact(digest, `its media type is ${mediaType}, ${want}`)
}

/** Refuses a mark by which a layer deletes a file of the model, or a folder around it, that a layer before it has. */
function refuseDeletion(name: string, wanted: string): void {
  const [, folder = '', base = ''] = /^(.*?)([^/]*)\/*$/s.exec(name.replace(/^(\.?\/+)+/, '')) ?? []
  if (!base.startsWith('.wh.')) return
  const deleted = base === '.wh..wh..opq' ? folder : `${folder}${base.slice('.wh.'.length)}/`
  const path = wanted === '' ? '' : `${wanted}/`
  if (!path.startsWith(deleted) && !deleted.startsWith(path)) return
  throw invalidArtifact(name, 'a layer deletes files by it, want layers that only add some')
}
