import { createHash } from 'node:crypto'
import type { SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { membersOf, parseMembers } from '../json-members.ts'
import type { FetchContext } from './fetch-options.ts'
import { followRedirects } from './follow-redirects.ts'
import {
  type HttpClient,
  type HttpHeaders,
  type StreamedAnswer,
  toStatusFailure,
} from './http-get.ts'
import type { ImageAddress } from './image-address.ts'
import { showUri } from './source-uri.ts'
import { invalidArtifact, show } from './tree-plan.ts'

/** A blob or a manifest, as a manifest names it. */
export interface Descriptor {
  readonly mediaType: string
  /** `sha256:HEX`. */
  readonly digest: string
  readonly sizeBytes: number
  readonly annotations: Readonly<Record<string, unknown>>
  /** `OS/ARCHITECTURE` of an image in an index; '' if it names none. */
  readonly platform: string
}

/** A manifest that was read, with its digest. */
export interface Manifest {
  readonly digest: string
  readonly members: Readonly<Record<string, unknown>>
}

const ACCEPT = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ')
/** Characters. Registries take manifests of at least 4 MiB. */
const MAX_MANIFEST = 4 * 2 ** 20
const MAX_TOKEN = 64 * 1024
const SHA256 = /^sha256:[0-9a-f]{64}$/

/** Reads manifests and blobs of one repository in a registry. It asks for a token where the registry wants one. */
export class OciRegistry {
  readonly #at: ImageAddress
  /** Credentials as `Basic` or `Bearer`. */
  readonly #credentials: string | undefined
  #authorization: string | undefined

  constructor(at: ImageAddress, { registries, authorization }: FetchContext['credentials']) {
    this.#at = at
    this.#credentials = (findRegistry(registries, at) ?? authorization)?.reveal()
    // A password waits until the registry says who may have it.
    if (this.#credentials?.startsWith('Bearer ')) this.#authorization = this.#credentials
  }

  /** Reads a manifest. @param reference - a tag, or a digest, which is checked. */
  async manifest(client: HttpClient, reference: string): Promise<Manifest> {
    const answer = await this.#get(client, `manifests/${reference}`, { accept: ACCEPT })
    if (answer.status !== 200) throw await this.refused(client, answer)
    const text = await client.text(answer, 'a manifest', MAX_MANIFEST)
    const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
    if (SHA256.test(reference) && reference !== digest) {
      const problem = `'${showUri(answer.url)}' has ${digest}, want ${reference}`
      throw new ServeError('ARTIFACT_MISMATCH', problem)
    }
    const members = parseMembers(text)
    if (members !== undefined) return { digest, members }
    throw new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(answer.url)}' answered no manifest`)
  }

  /** Sends the request for a blob, which may lie on another server. @returns its answer, of any status. */
  async blob(client: HttpClient, digest: string, headers: HttpHeaders): Promise<StreamedAnswer> {
    return await this.#get(client, `blobs/${digest}`, headers)
  }

  /** Converts a response that refuses a request to an error, with the words of the registry. */
  async refused(client: HttpClient, answer: StreamedAnswer): Promise<ServeError> {
    const text = await client.text(answer, 'a refusal', MAX_TOKEN).catch(() => '')
    const { errors } = parseMembers(text) ?? {}
    const { code, message } = membersOf(Array.isArray(errors) ? errors[0] : undefined)
    const words = [code, message].filter((part) => typeof part === 'string' && part !== '')
    const failure = toStatusFailure(answer, show(words.join(': ')))
    if (failure.reason !== 'ARTIFACT_DENIED' || this.#credentials !== undefined) return failure
    const how = ` (asked without credentials, none were found for ${this.#at.host})`
    return new ServeError('ARTIFACT_DENIED', `${failure.message}${how}`)
  }

  async #get(client: HttpClient, path: string, headers: HttpHeaders): Promise<StreamedAnswer> {
    const url = new URL(`/v2/${this.#at.repository}/${path}`, this.#at.registry)
    const send = async (): Promise<StreamedAnswer> => {
      const authorization = this.#authorization
      return await followRedirects(client, url, {
        headers,
        ...(authorization !== undefined && { authorization }),
      })
    }
    const answer = await send()
    const challenge = answer.headers['www-authenticate']
    // A server to which the registry leads may not ask for the registry's password.
    const isOwn = answer.url.origin === url.origin
    if (answer.status !== 401 || challenge === undefined || !isOwn) return answer
    // Tokens last for minutes, so a long fetch is asked again.
    const authorization = await this.#answer(client, challenge)
    if (authorization === undefined) return answer
    answer.body.destroy()
    this.#authorization = authorization
    return await send()
  }

  /** @returns the header that the registry asks for; undefined if there are no such credentials. */
  async #answer(client: HttpClient, challenge: string): Promise<string | undefined> {
    const isBasic = this.#credentials?.startsWith('Basic ') === true
    if (/^basic\b/i.test(challenge)) return isBasic ? this.#credentials : undefined
    if (!/^bearer\b/i.test(challenge)) return undefined
    const url = toTokenUrl(challenge, this.#at)
    const headers = isBasic ? { authorization: this.#credentials ?? '' } : {}
    const answer = await client.get(url, headers)
    if (answer.status !== 200) throw await this.refused(client, answer)
    const members = parseMembers(await client.text(answer, 'a token', MAX_TOKEN)) ?? {}
    const token = textOf(members['token'] ?? members['access_token'])
    if (/^[!-~]+$/.test(token)) return `Bearer ${token}`
    throw new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(url)}' answered without a token`)
  }
}

/** Finds the credentials for a repository: those of the longest path that leads to it, as the kubelet does. */
function findRegistry(
  registries: FetchContext['credentials']['registries'],
  { host, repository }: ImageAddress,
): SecretText | undefined {
  let place = `${host}/${repository}`
  for (;;) {
    const found = registries?.get(place)
    const end = place.lastIndexOf('/')
    if (found !== undefined || end === -1) return found
    place = place.slice(0, end)
  }
}

/** Builds the address at which a token is asked for. The registry names its server, which may get a password. */
function toTokenUrl(challenge: string, { registry, repository }: ImageAddress): URL {
  const url = URL.parse(parameterOf(challenge, 'realm') ?? '')
  const isDowngrade = registry.protocol === 'https:' && url?.protocol !== 'https:'
  if (url === null || isDowngrade || !/^https?:$/.test(url.protocol)) {
    const text = `'${showUri(registry)}' names no https server for its tokens`
    throw new ServeError('ARTIFACT_UNAVAILABLE', text)
  }
  const scope = parameterOf(challenge, 'scope') ?? `repository:${repository}:pull`
  url.searchParams.append('scope', scope)
  const service = parameterOf(challenge, 'service')
  if (service !== undefined) url.searchParams.append('service', service)
  return url
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function parameterOf(challenge: string, name: string): string | undefined {
  return new RegExp(`[\\s,]${name}="([^"]*)"`, 'i').exec(challenge)?.[1]
}

/** Reads the descriptors in a member of a manifest. @throws ServeError ARTIFACT_INVALID for one without size or SHA-256. */
export function toDescriptors(value: unknown): readonly Descriptor[] {
  return (Array.isArray(value) ? value : []).map((one: unknown) => {
    const { mediaType, digest, size, annotations, platform } = membersOf(one)
    const { os, architecture } = membersOf(platform)
    const name = String(digest)
    if (!SHA256.test(name)) throw invalidArtifact(name, 'want a digest sha256:HEX')
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
      throw invalidArtifact(name, 'the manifest names it without a size')
    }
    return {
      mediaType: String(mediaType),
      digest: name,
      sizeBytes: size,
      annotations: membersOf(annotations),
      platform: typeof os === 'string' ? `${os}/${textOf(architecture)}` : '',
    }
  })
}
