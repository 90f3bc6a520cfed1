import { basename, dirname, extname, join } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { Fetched, FetchOptions } from './fetch-options.ts'
import { HttpClient } from './http-get.ts'
import { HubApi, type HubFile } from './hub-api.ts'
import { downloadKnownFiles } from './known-file.ts'
import { type HubAddress, showUri } from './source-uri.ts'
import { invalidArtifact, TreePlan, tooManyFiles } from './tree-plan.ts'

/** A file with its place in the model's folder. */
interface PlacedFile extends HubFile {
  readonly place: string
}

/** Endings of files that engines read, with the name that they look for in the folder of a version. */
const MODEL_FILES: Readonly<Record<string, string>> = {
  '.onnx': 'model.onnx',
  '.pt': 'model.pt',
  '.py': 'model.py',
}
/** Files of git's own. */
const NOT_OF_THE_MODEL = /(^|\/)\.git(attributes|ignore)$/

/**
 * Downloads a folder of a repository on a Hub, or one file of it.
 *
 * @returns undefined if the revision is still the commit of `options.validator`.
 */
export async function fetchHub(
  at: HubAddress,
  options: FetchOptions,
): Promise<Fetched | undefined> {
  const { context, work, uri } = options
  const api = new HubApi(at, context.credentials)
  const client = new HttpClient(context)
  const commit = await api.commit(client)
  if (commit === options.validator) return undefined
  const { maxFiles } = context.bounds
  const placed = await placeFiles(api, { at, commit, client, uri, maxFiles })
  // Only files of this commit count: the attempt before may have found another.
  const root = work.path(commit)
  for (const path of options.done) if (!path.startsWith(root)) options.done.delete(path)
  const plan = new TreePlan(context.bounds)
  const files = placed.map(({ path, place, sizeBytes, digest }) => ({
    to: join(root, plan.add('file', place, sizeBytes)),
    name: path,
    sizeBytes,
    digest,
    get: (one: HttpClient, headers: Readonly<Record<string, string>>) =>
      api.file(one, { path, commit }, headers),
    refused: async (answer: Parameters<HubApi['refused']>[0]) => api.refused(answer),
  }))
  await downloadKnownFiles(files, (attempt) => new HttpClient(attempt), options)
  return { root, validator: commit }
}

/** Lists the files at an address, and places them in the model's folder. @throws ServeError ARTIFACT_NOT_FOUND if there are none. */
async function placeFiles(
  api: HubApi,
  {
    at: { path },
    commit,
    client,
    uri,
    maxFiles,
  }: {
    readonly at: HubAddress
    readonly commit: string
    readonly client: HttpClient
    readonly uri: string
    readonly maxFiles: number
  },
): Promise<readonly PlacedFile[]> {
  const isFile = extname(path) in MODEL_FILES
  const parent = dirname(path)
  const folder = isFile ? (parent === '.' ? '' : parent) : path
  const listed: HubFile[] = []
  for await (const page of api.files(client, { commit, folder, isDeep: !isFile })) {
    for (const file of page) {
      const isOther = isFile ? !file.path.startsWith(path) : NOT_OF_THE_MODEL.test(file.path)
      if (!isOther) listed.push(file)
    }
    // Before the next page: a wrong address may have millions of files.
    if (listed.length > maxFiles) throw tooManyFiles(maxFiles)
  }
  const placed = isFile ? placeFile(listed, path) : placeFolder(listed, folder)
  if (placed.length > 0) return placed
  const want = isFile ? 'a file of a model' : "a model's directory"
  throw new ServeError('ARTIFACT_NOT_FOUND', `'${showUri(uri)}' has no files, want ${want}`)
}

/** Places one file of a model, and the files of its weights, which lie beside it. @param listed - files that begin with its name. */
function placeFile(listed: readonly HubFile[], path: string): readonly PlacedFile[] {
  if (!listed.some((file) => file.path === path)) return []
  const name = MODEL_FILES[extname(path)] ?? basename(path)
  return listed.map((file) => ({
    ...file,
    place: `1/${file.path === path ? name : basename(file.path)}`,
  }))
}

/**
 * Places the files of a folder. Few repositories of a Hub have folders of versions: the files of others are version 1.
 */
function placeFolder(listed: readonly HubFile[], folder: string): readonly PlacedFile[] {
  const prefix = folder === '' ? '' : `${folder}/`
  const within = listed.map((file) => {
    if (file.path.startsWith(prefix)) return { ...file, place: file.path.slice(prefix.length) }
    throw invalidArtifact(file.path, 'it is none of the files that were asked for')
  })
  const isModel = within.some(({ place }) => place === 'config.pbtxt' || /^\d+\//.test(place))
  return isModel ? within : within.map((file) => ({ ...file, place: `1/${file.place}` }))
}
