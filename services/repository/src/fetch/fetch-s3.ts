import { createHash } from 'node:crypto'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ServeError } from '@tutti/errors'
import { persist, TransientFailure } from './attempts.ts'
import { discardPart, downloadFile } from './download-file.ts'
import { type FetchOptions, mismatch } from './fetch-http.ts'
import { HttpClient } from './http-get.ts'
import { onDisk, syncDirectory } from './on-disk.ts'
import { S3Client } from './s3-client.ts'
import { digestListing, listObjects, type S3Object } from './s3-listing.ts'
import { digestTree } from './tree-digest.ts'
import { TreePlan } from './tree-plan.ts'
import type { FetchRecord, WorkFolder } from './work-folder.ts'

const LISTING = 'listing.json'
/** Objects at the same time: enough to fill a line with small ones. */
const PARALLEL = 4
/** How often the objects may change under the fetch. */
const MAX_LISTINGS = 3

/** An object was written anew since it was listed. */
class ObjectChanged extends Error {}

/**
 * Fetches all objects below a prefix and publishes them as a folder.
 *
 * @returns the record; `kept` itself if the listing is still the one that it was made of.
 */
export async function fetchS3(
  source: { readonly bucket: string; readonly prefix: string },
  o: FetchOptions,
): Promise<FetchRecord> {
  const stop = new AbortController()
  const signal = AbortSignal.any([o.context.signal, stop.signal])
  const context = { ...o.context, signal }
  const client = new HttpClient(context)
  try {
    const s3 = new S3Client(source.bucket, { context, client })
    const bucket = new BucketFetch(s3, client, { ...o, context })
    for (let listing = 1; ; listing++) {
      try {
        return await bucket.run(source.prefix, stop)
      } catch (error) {
        if (!(error instanceof ObjectChanged)) throw error
        if (listing < MAX_LISTINGS) continue
        const text = `'${o.uri}' changed ${listing} times while it was fetched`
        throw new ServeError('ARTIFACT_UNAVAILABLE', text, { cause: error })
      }
    }
  } finally {
    client.close()
  }
}

class BucketFetch {
  readonly #s3: S3Client
  readonly #client: HttpClient
  readonly #o: FetchOptions
  readonly #work: WorkFolder

  constructor(s3: S3Client, client: HttpClient, o: FetchOptions) {
    this.#s3 = s3
    this.#client = client
    this.#o = o
    this.#work = o.work
  }

  async run(prefix: string, stop: AbortController): Promise<FetchRecord> {
    const { context, uri, kept, digest: wanted } = this.#o
    const plan = new TreePlan(context.bounds)
    const objects = await listObjects(this.#s3, prefix, { context, plan, shown: uri })
    const validator = digestListing(objects)
    if (kept?.validator === validator) return kept
    await this.#dropOthers(objects)
    await this.#fetchAll(objects, stop)
    const { tree } = this.#work
    const { digest, files, bytes } = await digestTree(tree, context.bounds)
    if (wanted !== undefined && digest !== wanted) {
      await this.#work.clear('tree')
      throw mismatch(uri, digest, wanted)
    }
    const record = { uri, digest, tree: digest, files, bytes, validator }
    context.signal.throwIfAborted()
    await this.#work.publish(tree, record)
    return record
  }

  /** Keeps, of what an earlier attempt gathered, the objects that are as they were. */
  async #dropOthers(objects: readonly S3Object[]): Promise<void> {
    const before = (await this.#work.note(LISTING, isListing)) ?? []
    const same = new Set(objects.map(({ path, etag }) => `${etag} ${path}`))
    const gathered = before.filter(({ path, etag }) => same.has(`${etag} ${path}`))
    if (before.length !== gathered.length || before.length === 0) {
      for (const { path } of before) {
        if (!gathered.some((one) => one.path === path))
          await rm(join(this.#work.tree, path), { force: true })
      }
      if (before.length === 0) await this.#work.clear('tree')
    }
    await onDisk(this.#work.tree, () => mkdir(this.#work.tree, { recursive: true }))
    await this.#work.writeNote(LISTING, objects)
  }

  async #fetchAll(objects: readonly S3Object[], stop: AbortController): Promise<void> {
    const rest = objects.values()
    const fetchSome = async (): Promise<void> => {
      for (const object of rest) {
        try {
          await this.#fetchOne(object)
        } catch (error) {
          if (!(error instanceof ObjectChanged)) stop.abort(error)
          throw error
        }
      }
    }
    const runs = await Promise.allSettled(Array.from({ length: PARALLEL }, fetchSome))
    const failed = runs.find((run) => run.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  async #fetchOne(object: S3Object): Promise<void> {
    const target = join(this.#work.tree, object.path)
    if ((await sizeOf(target)) === object.size) return
    const part = partName(object)
    const from = await persist(this.#o.context, (moved) => this.#download(object, part, moved))
    await onDisk(target, async () => {
      await mkdir(dirname(target), { recursive: true })
      await rename(from, target)
      await syncDirectory(dirname(target))
    })
    await discardPart({ work: this.#work, part })
  }

  async #download(object: S3Object, part: string, moved: () => void): Promise<string> {
    const { context, digest } = this.#o
    const { key, etag, size } = object
    const found = await downloadFile({
      context,
      client: this.#client,
      work: this.#work,
      part,
      uri: key,
      get: (headers) =>
        this.#s3.object(key, { ...headers, ...(etag !== '' && { 'if-match': etag }) }),
      isChecked: digest !== undefined,
      moved,
      refused: async (answer) => {
        const failure = await this.#s3.refused(answer)
        return answer.status === 412 || answer.status === 404 ? changed(object) : failure
      },
    })
    if (found?.sizeBytes === size) return found.path
    await discardPart({ work: this.#work, part })
    // A server that heeds no `if-match`.
    if (found?.etag !== etag) throw changed(object)
    const text = `object '${key}' has ${found.sizeBytes} bytes, want ${size} as it is listed`
    throw new TransientFailure(new ServeError('ARTIFACT_UNAVAILABLE', text))
  }
}

/** Parts of other states of an object have other names. */
function partName({ key, etag, size }: S3Object): string {
  return `part-${createHash('sha256').update(`${key} ${etag} ${size}`).digest('hex').slice(0, 32)}`
}

function changed({ key }: S3Object): ObjectChanged {
  return new ObjectChanged(`object '${key}' changed while it was fetched`)
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size
  } catch {
    // It is not there yet.
    return undefined
  }
}

function isListing(value: unknown): value is readonly S3Object[] {
  return Array.isArray(value) && value.every((one) => typeof Object(one).path === 'string')
}
