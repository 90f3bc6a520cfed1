import type { TokenSource } from '@tutti/repository'
import type * as Library from 'google-auth-library'
import { TokenRequests, toMethod } from './token-requests.ts'

type Key = Readonly<Record<string, unknown>>
interface ClientOptions {
  readonly transporter: Library.gaxios.Gaxios
}

const SCOPES = ['https://www.googleapis.com/auth/devstorage.read_only']
const STORAGE = 'https://storage.googleapis.com/'

/** Functions that open a client of Google's library, by the type of the credential file. */
const CLIENTS: Readonly<
  Record<string, (library: typeof Library, key: Key, o: ClientOptions) => Library.AuthClient>
> = {
  service_account: ({ JWT }, key, o) => {
    const client = new JWT({ ...o, scopes: SCOPES })
    client.fromJSON({ ...key })
    // The key itself signs the tokens: no server is asked for one.
    client.useJWTAccessWithScope = true
    return client
  },
  authorized_user: ({ UserRefreshClient }, key, o) => {
    const uri = key['token_uri']
    const endpoints = typeof uri === 'string' ? { endpoints: { oauth2TokenUrl: uri } } : {}
    const client = new UserRefreshClient({ ...o, ...endpoints })
    client.fromJSON({ ...key })
    return client
  },
  // Credentials of another cloud, or of a cluster: workload identity federation.
  external_account: (library, key, o) => {
    const client = openExternal(library, { ...key, ...o, scopes: SCOPES })
    // The library gives the part of it that changes tokens no transporter.
    Object.assign(Object(Reflect.get(client, 'stsCredential')), o)
    return client
  },
}

/** Opens an external account as `ExternalAccountClient.fromJSON` does, but without its warning in the log of the process. */
function openExternal(
  { AwsClient, IdentityPoolClient, PluggableAuthClient }: typeof Library,
  options: Key,
): Library.AuthClient {
  const source: object = Object(options['credential_source'])
  // The library checks what it reads of them.
  if ('environment_id' in source) return new AwsClient(Object(options))
  if ('executable' in source) return new PluggableAuthClient(Object(options))
  return new IdentityPoolClient(Object(options))
}

function openClient(library: typeof Library, key: Key, o: ClientOptions): Library.AuthClient {
  const { type } = key
  const open = Object.entries(CLIENTS).find(([name]) => name === type)?.[1]
  if (open !== undefined) return open(library, key, o)
  const want = 'service_account, authorized_user or external_account'
  throw new Error(`it has the type ${JSON.stringify(type) ?? 'none'}, want ${want}`)
}

/**
 * Opens a file of credentials with Google's library.
 *
 * @param key - members of the file.
 * @throws Error if the library refuses the file.
 */
export async function openGoogle(key: Key): Promise<TokenSource> {
  const library = await import('google-auth-library')
  const requests = new TokenRequests('Google')
  const transporter = new library.gaxios.Gaxios({
    fetchImplementation: async (input, init) => {
      const asked = new Request(input, init)
      const body = await asked.text()
      const { status, headers, text } = await requests.send({
        url: new URL(asked.url),
        method: toMethod(asked.method),
        headers: Object.fromEntries(asked.headers),
        ...(body !== '' && { body }),
      })
      const type = headers['content-type'] ?? 'application/json'
      return new Response(text, { status, headers: { 'content-type': type } })
    },
  })
  // The bucket is asked again as a whole.
  transporter.interceptors.request.add({
    resolved: (config) => Promise.resolve({ ...config, retry: false }),
  })
  const client = openClient(library, key, { transporter })
  return (send) =>
    requests.ask(send, async () => {
      const headers = await client.getRequestHeaders(STORAGE)
      return headers.get('authorization')?.replace(/^Bearer /, '')
    })
}
