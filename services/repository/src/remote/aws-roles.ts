import { type Clock, SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readTag } from '../fetch/bucket-xml.ts'
import type { FetchCredentials } from '../fetch/credentials.ts'
import { HttpClient, type StreamedAnswer, toStatusFailure } from '../fetch/http-get.ts'
import { parseMembers } from '../json-members.ts'
import {
  type EnvironmentVariables,
  readEndpoint,
  readSetting,
  settingRefusal,
  type Texts,
  textsOf,
} from './credential-file.ts'
import { Kept, type Lasting } from './kept.ts'

export type AwsKeys = NonNullable<FetchCredentials['aws']>
type Http = ConstructorParameters<typeof HttpClient>[0]
type Keys = Lasting<AwsKeys | undefined>

/** Address of ECS; that of EKS Pod Identity comes as a whole address. */
const CONTAINER_HOST = 'http://169.254.170.2'
const INSTANCE_HOST = 'http://169.254.169.254'
/** Milliseconds. It is a hop away, or not there. */
const INSTANCE_STALL_MS = 3000
/** Milliseconds before their end at which keys are asked for anew. */
const MARGIN_MS = 5 * 60_000
/** Milliseconds after which a machine without a role is asked again. */
const ABSENT_MS = 60_000
/** Characters. */
const MAX_ANSWER = 64 * 1024

/**
 * Gets the temporary keys that AWS gives to a pod (AWS_WEB_IDENTITY_TOKEN_FILE), a container (AWS_CONTAINER_CREDENTIALS_*) or a
 * machine. Keys are kept until five minutes before they expire.
 */
export class AwsRoles {
  readonly #env: EnvironmentVariables
  readonly #clock: Pick<Clock, 'epochMs'>
  readonly #kept: Kept<AwsKeys | undefined>

  constructor(o: { readonly env: EnvironmentVariables; readonly clock: Pick<Clock, 'epochMs'> }) {
    this.#env = o.env
    this.#clock = o.clock
    this.#kept = new Kept(o.clock)
  }

  /**
   * Chooses the source of keys by the variables of the process.
   *
   * @param o.isAws - whether the bucket is at AWS; only then the machine is asked for its role.
   * @returns a function that gives the keys of a request; undefined without a role. The function throws ServeError
   * ARTIFACT_UNAVAILABLE, ARTIFACT_DENIED and SETTING_INVALID.
   */
  keys(
    http: Http,
    o: { readonly region: string | undefined; readonly isAws: boolean },
  ): () => Promise<AwsKeys | undefined> {
    const {
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: full,
      AWS_EC2_METADATA_DISABLED: isDisabled,
    } = this.#env
    if (tokenFile) return () => this.#kept.get('', () => this.#ofPod(http, tokenFile, o.region))
    const uri = relative ? `${CONTAINER_HOST}${relative}` : full
    if (uri) return () => this.#kept.get('', () => this.#ofContainer(http, uri))
    if (!o.isAws || isDisabled?.toLowerCase() === 'true') return () => Promise.resolve(undefined)
    return () => this.#kept.get('', () => this.#ofMachine(http))
  }

  async #ofPod(http: Http, tokenFile: string, region: string | undefined): Promise<Keys> {
    const { AWS_ROLE_ARN: role, AWS_ROLE_SESSION_NAME: session = 'tutti' } = this.#env
    if (!role) throw settingRefusal('AWS_ROLE_ARN', 'is missing beside AWS_WEB_IDENTITY_TOKEN_FILE')
    const token = await readSetting('AWS_WEB_IDENTITY_TOKEN_FILE', tokenFile)
    const host = region ? `sts.${region}.amazonaws.com` : 'sts.amazonaws.com'
    const url = readEndpoint('AWS_ENDPOINT_URL_STS', this.#env) ?? new URL(`https://${host}/`)
    const client = new HttpClient(http)
    const form = {
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: session,
      WebIdentityToken: token.trim(),
    }
    const answer = await client.send(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form).toString(),
    })
    const xml = await client.text(answer, 'keys', MAX_ANSWER)
    if (answer.status !== 200) {
      const detail = [readTag(xml, 'Code'), readTag(xml, 'Message')].filter((part) => part !== '')
      throw refused(answer, detail.join(': '))
    }
    const names = ['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration']
    const found = Object.fromEntries(names.map((name) => [name, readTag(xml, name)]))
    return this.#taken(answer, { ...found, Token: found['SessionToken'] ?? '' })
  }

  async #ofContainer(http: Http, uri: string): Promise<Keys> {
    const url = /^https?:\/\//.test(uri) ? URL.parse(uri) : null
    if (url === null) throw settingRefusal('AWS_CONTAINER_CREDENTIALS_FULL_URI', 'is no URL')
    const variable = 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'
    const file = this.#env[variable]
    const text = file
      ? await readSetting(variable, file)
      : (this.#env['AWS_CONTAINER_AUTHORIZATION_TOKEN'] ?? '')
    const token = text.trim()
    if (!/^[ -~]*$/.test(token)) {
      throw settingRefusal(variable, 'has characters that no header can carry')
    }
    return await this.#asked(
      new HttpClient(http),
      url,
      token === '' ? {} : { authorization: token },
    )
  }

  async #ofMachine(http: Http): Promise<Keys> {
    const variable = 'AWS_EC2_METADATA_SERVICE_ENDPOINT'
    const base = readEndpoint(variable, this.#env) ?? new URL(INSTANCE_HOST)
    const client = new HttpClient({
      ...http,
      bounds: { ...http.bounds, stallMs: INSTANCE_STALL_MS },
    })
    const none = { value: undefined, untilMs: this.#clock.epochMs() + ABSENT_MS }
    const lifetime = { 'x-aws-ec2-metadata-token-ttl-seconds': '300' }
    const options = { method: 'PUT', headers: lifetime } as const
    const opened = await client
      .send(new URL('/latest/api/token', base), options)
      .catch((error: unknown) => {
        // Not a machine at AWS.
        if (!http.signal.aborted) return undefined
        throw error
      })
    if (opened?.status !== 200) {
      opened?.body.destroy()
      return none
    }
    const token = await client.text(opened, 'a token', MAX_ANSWER)
    if (!/^[!-~]+$/.test(token)) return none
    const headers = { 'x-aws-ec2-metadata-token': token }
    const roles = new URL('/latest/meta-data/iam/security-credentials/', base)
    const answer = await client.get(roles, headers)
    // 404: a machine without a role.
    if (answer.status !== 200) {
      answer.body.destroy()
      if (answer.status === 404) return none
      throw refused(answer)
    }
    const [role = ''] = (await client.text(answer, 'a role', MAX_ANSWER)).split('\n')
    return await this.#asked(client, new URL(encodeURIComponent(role.trim()), roles), headers)
  }

  async #asked(client: HttpClient, url: URL, headers: Texts): Promise<Keys> {
    const answer = await client.get(url, headers)
    const text = await client.text(answer, 'keys', MAX_ANSWER)
    if (answer.status !== 200) throw refused(answer)
    return this.#taken(answer, textsOf(parseMembers(text)))
  }

  #taken({ url }: StreamedAnswer, found: Texts): Keys {
    const { AccessKeyId = '', SecretAccessKey = '', Token = '', Expiration = '' } = found
    const isWhole = [AccessKeyId, SecretAccessKey, Token].every((text) => /^[!-~]+$/.test(text))
    const endsMs = Date.parse(Expiration)
    if (!isWhole || Number.isNaN(endsMs)) {
      const text = `'${url.href}' answered without keys, or their time`
      throw new ServeError('ARTIFACT_UNAVAILABLE', text)
    }
    const secretAccessKey = new SecretText(SecretAccessKey)
    return {
      value: { accessKeyId: AccessKeyId, secretAccessKey, sessionToken: new SecretText(Token) },
      untilMs: endsMs - MARGIN_MS,
    }
  }
}

/** Converts a refusal to an error: what AWS refuses with any status of a client's fault, it refuses again. */
function refused(answer: StreamedAnswer, detail = 'asked for keys of AWS'): ServeError {
  const { message } = toStatusFailure(answer, detail)
  const isDenied = answer.status >= 400 && answer.status < 500 && answer.status !== 429
  return new ServeError(isDenied ? 'ARTIFACT_DENIED' : 'ARTIFACT_UNAVAILABLE', message)
}
