import { createSign } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type HttpAnswer, HttpClient, toStatusFailure } from '../fetch/http-get.ts'
import type { RepositoryUri } from '../repository-uri.ts'
import {
  type Environment,
  parseJson,
  readCredentialEntry,
  readIfThere,
  readSetting,
  settingRefusal,
  type Texts,
  textsOf,
} from './credential-file.ts'
import { parseMembers } from './json-members.ts'
import { Kept, type Lasting } from './kept.ts'

type Http = ConstructorParameters<typeof HttpClient>[0]
type Token = Lasting<string | undefined>

const SCOPE = 'https://www.googleapis.com/auth/devstorage.read_only'
const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const VARIABLE = 'GOOGLE_APPLICATION_CREDENTIALS'
/** Of a machine at Google: its metadata server. */
const METADATA_HOST = 'metadata.google.internal'
/** Milliseconds. It is a hop away, or not there. */
const METADATA_STALL_MS = 3000
interface CredentialFile {
  readonly path: string
  /** What names it. */
  readonly by: string
  readonly text: string
}

/** Milliseconds: a token is renewed this long before its end, and a machine without a metadata server is asked again after it. */
const MARGIN_MS = 60_000
const HOUR_S = 3600
/** Characters. */
const MAX_ANSWER = 64 * 1024

/**
 * The tokens for a repository in Google Cloud Storage, as Triton finds them: the file that TRITON_CLOUD_CREDENTIAL_PATH gives, that of
 * GOOGLE_APPLICATION_CREDENTIALS, that of `gcloud auth application-default login`, the machine's metadata server. Without any, requests
 * have none.
 */
export class GoogleCredentials {
  readonly #at: Extract<RepositoryUri, { readonly kind: 'gs' }>
  readonly #env: Environment
  readonly #clock: Pick<Clock, 'epochMs'>
  readonly #kept: Kept<string | undefined>

  constructor(
    at: Extract<RepositoryUri, { readonly kind: 'gs' }>,
    o: { readonly env: Environment; readonly clock: Pick<Clock, 'epochMs'> },
  ) {
    this.#at = at
    this.#env = o.env
    this.#clock = o.clock
    this.#kept = new Kept(o.clock)
  }

  /**
   * Looks what there is now.
   *
   * @returns gives the token of a request. It throws ServeError ARTIFACT_UNAVAILABLE and ARTIFACT_DENIED.
   * @throws ServeError SETTING_INVALID for a file that cannot be read, never with a value of it.
   */
  async read(http: Http): Promise<() => Promise<string | undefined>> {
    const file = await this.#file()
    if (file === undefined) return () => this.#kept.get('', () => this.#ofMachine(http))
    const ask = this.#ofFile(file, http)
    return () => this.#kept.get(file.text, ask)
  }

  async #file(): Promise<CredentialFile | undefined> {
    const { HOME = '/root', CLOUDSDK_CONFIG = join(HOME, '.config', 'gcloud') } = this.#env
    const entry = await readCredentialEntry(this.#at, this.#env)
    if (entry !== undefined && typeof entry !== 'string') {
      const problem = 'has an entry of gs that is no path, want that of a file of credentials'
      throw settingRefusal('TRITON_CLOUD_CREDENTIAL_PATH', problem)
    }
    const named = entry || this.#env[VARIABLE]
    const by = entry ? 'the entry of TRITON_CLOUD_CREDENTIAL_PATH' : VARIABLE
    if (named) return { path: named, by, text: await readSetting(by, named) }
    const path = join(CLOUDSDK_CONFIG, 'application_default_credentials.json')
    const text = await readIfThere(path)
    return text === '' ? undefined : { path, by: 'gcloud auth application-default login', text }
  }

  #ofFile({ path, by, text }: CredentialFile, http: Http) {
    const key = textsOf(parseJson(text, { field: by, path }))
    const wants = (names: readonly string[]): void => {
      const missing = names.find((name) => !key[name])
      if (missing === undefined) return
      throw settingRefusal(by, `names '${path}', which has no ${missing}`)
    }
    const { type } = key
    if (type === 'service_account') {
      wants(['client_email', 'private_key'])
      return () => Promise.resolve(this.#signed(key, { path, by }))
    }
    if (type === 'authorized_user') {
      wants(['client_id', 'client_secret', 'refresh_token'])
      return () => this.#refreshed(key, { by, http })
    }
    const problem = `which has the type "${type}", want service_account or authorized_user`
    throw settingRefusal(by, `names '${path}', ${problem}`)
  }

  /** A token that the key itself signs: no server is asked for it. @see https://google.aip.dev/auth/4111 */
  #signed(
    { client_email, private_key = '', private_key_id: kid }: Texts,
    { path, by }: Pick<CredentialFile, 'path' | 'by'>,
  ): Token {
    const now = this.#clock.epochMs()
    const iat = Math.floor(now / 1000)
    const claims = { iss: client_email, sub: client_email, scope: SCOPE, iat, exp: iat + HOUR_S }
    const parts = [{ alg: 'RS256', typ: 'JWT', kid }, claims]
    const text = parts
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    try {
      const signature = createSign('RSA-SHA256').update(text).sign(private_key, 'base64url')
      return { value: `${text}.${signature}`, untilMs: now + (HOUR_S * 1000) / 2 }
    } catch {
      throw settingRefusal(by, `names '${path}', whose private_key cannot be read`)
    }
  }

  async #refreshed(
    key: Texts,
    { by, http }: Pick<CredentialFile, 'by'> & { readonly http: Http },
  ): Promise<Token> {
    const { client_id = '', client_secret = '', refresh_token = '' } = key
    const url = URL.parse(key['token_uri'] ?? TOKEN_URI)
    if (url === null) throw settingRefusal(by, 'names a file whose token_uri is no URL')
    const form = { grant_type: 'refresh_token', client_id, client_secret, refresh_token }
    const client = new HttpClient(http)
    const answer = await client.send(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form).toString(),
    })
    // 400: the user has withdrawn it, or it is too old.
    if (answer.status === 400) throw new ServeError('ARTIFACT_DENIED', refused(answer).message)
    return await this.#taken(client, answer)
  }

  async #ofMachine(http: Http): Promise<Token> {
    const none = { value: undefined, untilMs: this.#clock.epochMs() + MARGIN_MS }
    const host = this.#env['GCE_METADATA_HOST'] || METADATA_HOST
    const url = URL.parse(
      `http://${host}/computeMetadata/v1/instance/service-accounts/default/token`,
    )
    if (url === null) throw settingRefusal('GCE_METADATA_HOST', `is "${host}", want HOST[:PORT]`)
    const bounds = { ...http.bounds, stallMs: METADATA_STALL_MS }
    const client = new HttpClient({ ...http, bounds })
    const answer = await client
      .get(url, { 'metadata-flavor': 'Google' })
      .catch((error: unknown) => {
        // Not a machine at Google.
        if (!http.signal.aborted) return undefined
        throw error
      })
    const isGoogle = answer?.headers['metadata-flavor'] === 'Google'
    // 404: a machine without an account.
    if (answer === undefined || !isGoogle || answer.status === 404) {
      answer?.body.destroy()
      return none
    }
    return await this.#taken(client, answer)
  }

  async #taken(client: HttpClient, answer: HttpAnswer): Promise<Token> {
    if (answer.status !== 200) throw refused(answer)
    const text = await client.text(answer, 'a token', MAX_ANSWER)
    const { access_token: value, expires_in: seconds } = parseMembers(text) ?? {}
    if (typeof value !== 'string' || !/^[!-~]+$/.test(value)) {
      throw new ServeError('ARTIFACT_UNAVAILABLE', `'${answer.url.href}' answered without a token`)
    }
    const lastsMs = (typeof seconds === 'number' ? seconds : 0) * 1000 - MARGIN_MS
    return { value, untilMs: this.#clock.epochMs() + Math.max(0, lastsMs) }
  }
}

function refused(answer: HttpAnswer): ServeError {
  return toStatusFailure(answer, 'asked for a token of Google')
}
