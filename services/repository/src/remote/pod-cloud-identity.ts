import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { type Clock, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { parseMembers } from '../json-members.ts'
import type { AzureIdentity, CloudIdentity, SendTokenRequest, TokenSource } from './cloud-tokens.ts'
import { readSetting } from './credential-file.ts'
import { Kept, type Lasting } from './kept.ts'

const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/devstorage.read_only'
const AZURE_SCOPE = 'https://storage.azure.com/.default'
const AZURE_AUTHORITY = 'https://login.microsoftonline.com'
const LIFETIME_S = 3600
/** Milliseconds: a token is renewed this long before its end. */
const MARGIN_MS = 300_000

type Time = Pick<Clock, 'epochMs'>
type PodIdentity = Exclude<AzureIdentity, { readonly kind: 'managed' }>

/**
 * The identities of pods, without the clouds' libraries: keys of service accounts of Google, and secrets and workload identity of
 * Azure. The identity of a machine is no pod's: it would be every Model's.
 */
export function podCloudIdentity(clock: Time = systemClock): CloudIdentity {
  return {
    google: async (key) => await Promise.resolve(openServiceAccount(key, clock)),
    azure: async (identity) => {
      const problem = "the identity of a machine is every pod's, want workload identity or a key"
      if (identity.kind === 'managed') throw new Error(problem)
      const kept = new Kept<string>(clock)
      return await Promise.resolve((send) => kept.get('', () => askAzure(identity, send, clock)))
    },
  }
}

/** A key of Google signs the tokens itself: no server is asked for one. @see https://google.aip.dev/auth/4111 */
function openServiceAccount(key: Readonly<Record<string, unknown>>, clock: Time): TokenSource {
  const { type, client_email: email, private_key: pem, private_key_id: kid } = key
  if (type !== 'service_account' || typeof email !== 'string' || typeof pem !== 'string') {
    const want = 'want a key of a service_account, or workload identity without a file'
    throw new Error(`it has the type ${JSON.stringify(type) ?? 'none'}, ${want}`)
  }
  const secret = readKey(pem)
  const kept = new Kept<string>(clock)
  return () =>
    kept.get('', async () => {
      const nowMs = clock.epochMs()
      const iat = Math.floor(nowMs / 1000)
      const claims = { iss: email, sub: email, scope: GOOGLE_SCOPE, iat, exp: iat + LIFETIME_S }
      const parts = [{ alg: 'RS256', typ: 'JWT', ...(typeof kid === 'string' && { kid }) }, claims]
      const text = parts.map((one) => encodePart(JSON.stringify(one))).join('.')
      const value = `${text}.${encodePart(sign('sha256', Buffer.from(text), secret))}`
      return await Promise.resolve({ value, untilMs: nowMs + LIFETIME_S * 1000 - MARGIN_MS })
    })
}

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    // Its message may have parts of the key.
    throw new Error('its private_key cannot be read')
  }
}

function encodePart(bytes: string | Buffer): string {
  return Buffer.from(bytes).toString('base64url')
}

async function askAzure(
  identity: PodIdentity,
  send: SendTokenRequest,
  clock: Time,
): Promise<Lasting<string>> {
  const { tenantId, clientId, authorityHost = AZURE_AUTHORITY } = identity
  const path = `${encodeURIComponent(tenantId)}/oauth2/v2.0/token`
  const url = new URL(path, authorityHost.endsWith('/') ? authorityHost : `${authorityHost}/`)
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    scope: AZURE_SCOPE,
    ...(await proofOf(identity)),
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const { status, text } = await send({ url, method: 'POST', headers, body: body.toString() })
  const {
    access_token: value,
    expires_in: seconds,
    error_description: said,
  } = parseMembers(text) ?? {}
  if (status === 200 && typeof value === 'string' && /^[!-~]+$/.test(value)) {
    const lastsMs = (typeof seconds === 'number' ? seconds : 0) * 1000 - MARGIN_MS
    return { value, untilMs: clock.epochMs() + Math.max(0, lastsMs) }
  }
  const [line = ''] = typeof said === 'string' ? said.split(/[\r\n]/) : []
  const detail = line === '' ? '' : `: ${line.slice(0, 300)}`
  const isDenied = [400, 401, 403].includes(status)
  throw new ServeError(
    isDenied ? 'ARTIFACT_DENIED' : 'ARTIFACT_UNAVAILABLE',
    `'${url.origin}${url.pathname}' answered ${status}, asked for a token of Azure${detail}`,
  )
}

/** Reads what shows that the client is who it says. The kubelet writes the token anew before it ends. */
async function proofOf(identity: PodIdentity): Promise<Readonly<Record<string, string>>> {
  if (identity.kind === 'secret') return { client_secret: identity.secret.reveal() }
  const token = await readSetting('AZURE_FEDERATED_TOKEN_FILE', identity.tokenFile)
  return {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: token.trim(),
  }
}
