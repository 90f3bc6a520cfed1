import { join } from 'node:path'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { HttpClient, type StreamedAnswer, toStatusFailure } from '../fetch/http-get.ts'
import { parseMembers } from '../json-members.ts'
import type { RepositoryUri } from '../repository-uri.ts'
import { type CloudIdentity, type TokenSource, tokenSender } from './cloud-tokens.ts'
import {
  type EnvironmentVariables,
  parseCredentialJson,
  readCredentialEntry,
  readIfThere,
  readSetting,
  settingRefusal,
  WITHOUT_LIBRARIES,
} from './credential-file.ts'
import { Kept, type Lasting } from './kept.ts'

type Http = ConstructorParameters<typeof HttpClient>[0]
type Token = Lasting<string | undefined>

const VARIABLE = 'GOOGLE_APPLICATION_CREDENTIALS'
/** Metadata server of a machine at Google. */
const METADATA_HOST = 'metadata.google.internal'
/** Milliseconds. It is a hop away, or not there. */
const METADATA_STALL_MS = 3000
interface CredentialFile {
  readonly path: string
  /** The setting or the command that names it. */
  readonly by: string
  readonly text: string
}

/** Milliseconds: a token is renewed this long before its end, and a machine without a metadata server is asked again after it. */
const MARGIN_MS = 60_000
/** Characters. */
const MAX_ANSWER = 64 * 1024

/**
 * Finds the tokens for a repository in Google Cloud Storage in Triton's order: the file that TRITON_CLOUD_CREDENTIAL_PATH gives,
 * the file of GOOGLE_APPLICATION_CREDENTIALS, the file of `gcloud auth application-default login`, the machine's metadata server.
 * If all are missing, requests have no token.
 */
export class GoogleCredentials {
  readonly #at: Extract<RepositoryUri, { readonly kind: 'gs' }>
  readonly #env: EnvironmentVariables
  readonly #clock: Pick<Clock, 'epochMs'>
  readonly #identity: CloudIdentity | undefined
  readonly #kept: Kept<string | undefined>
  /** Source of tokens that was opened from the text of a file. It is kept because a client of the library keeps its token. */
  #opened: { readonly text: string; readonly source: Promise<TokenSource> } | undefined

  constructor(
    at: Extract<RepositoryUri, { readonly kind: 'gs' }>,
    o: {
      readonly env: EnvironmentVariables
      readonly clock: Pick<Clock, 'epochMs'>
      readonly identity: CloudIdentity | undefined
    },
  ) {
    this.#at = at
    this.#env = o.env
    this.#clock = o.clock
    this.#identity = o.identity
    this.#kept = new Kept(o.clock)
  }

  /**
   * Finds the source of tokens as it is now.
   *
   * @returns a function that gives the token of a request, or undefined. The function throws ServeError ARTIFACT_UNAVAILABLE,
   * ARTIFACT_DENIED and SETTING_INVALID.
   * @throws ServeError SETTING_INVALID for a file that cannot be read, without the file's values.
   */
  async read(http: Http): Promise<() => Promise<string | undefined>> {
    const file = await this.#file()
    if (file === undefined) return () => this.#kept.get('', () => this.#ofMachine(http))
    const source = await this.#open(file)
    return () => source(tokenSender(http))
  }

  async #open(file: CredentialFile): Promise<TokenSource> {
    if (this.#opened?.text !== file.text) {
      this.#opened = { text: file.text, source: this.#ofFile(file) }
    }
    const opened = this.#opened
    try {
      return await opened.source
    } catch (error) {
      if (this.#opened === opened) this.#opened = undefined
      throw error
    }
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

  /** Gets the library's token of a file. A file that the library refuses is a wrong setting. */
  async #ofFile({ path, by, text }: CredentialFile): Promise<TokenSource> {
    const key = parseCredentialJson(text, { field: by, path })
    const identity = this.#identity
    if (identity === undefined) {
      throw settingRefusal(by, `names '${path}', which ${WITHOUT_LIBRARIES}`)
    }
    const toRefusal = (error: unknown): unknown => {
      if (!(error instanceof Error) || error instanceof ServeError) return error
      return settingRefusal(by, `names '${path}', which cannot be used: ${error.message}`)
    }
    const source = await identity.google(key).catch((error: unknown) => {
      throw toRefusal(error)
    })
    return (send) =>
      source(send).catch((error: unknown) => {
        throw toRefusal(error)
      })
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

  async #taken(client: HttpClient, answer: StreamedAnswer): Promise<Token> {
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

function refused(answer: StreamedAnswer): ServeError {
  return toStatusFailure(answer, 'asked for a token of Google')
}
