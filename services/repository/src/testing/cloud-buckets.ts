import { generateKeyPairSync, verify } from 'node:crypto'
import { type IncomingMessage, type OutgoingHttpHeaders, request as sendRequest } from 'node:http'
import { env } from 'node:process'
import { SecretText, systemClock } from '@tutti/chassis'
import { onFreePort, startProcess } from '@tutti/chassis/testing'
import { signShared } from '../remote/as-api.ts'
import type { CloudIdentity } from '../remote/cloud-tokens.ts'
import { type Answer, type ArtifactServer, startArtifactServer } from './artifact-server.ts'
import { S3_CREDENTIALS, startScriptedS3 } from './scripted-s3.ts'

/** A bucket with a model repository in its folder `repo`, on a server whose answers a test may script. */
export interface CloudBucket extends Pick<ArtifactServer, 'heard' | 'close'> {
  /** Address of the repository. */
  readonly uri: string
  /** The credentials, as variables. `GOOGLE_APPLICATION_CREDENTIALS` has the text of the file. */
  readonly env: Readonly<Record<string, string>>
  /** Writes an object below `repo/`. */
  put(key: string, text: string): Promise<void>
  remove(key: string): Promise<void>
  /** Answers that the next requests get instead. */
  faults: Answer[]
}

/** A cloud in which tests make buckets. */
export interface Cloud {
  /** The clouds' libraries for credentials. */
  readonly identity?: CloudIdentity
  bucket(): Promise<CloudBucket>
  /** Builds a page of a list of folders; `next` is the token of the next page. */
  page(o: { readonly folders: readonly string[]; readonly next: string }): string
  /** Answer of the cloud to a request without the right to read, and the pattern of the error that follows. */
  readonly refusal: { readonly answer: Answer; readonly text: RegExp }
  close(): Promise<void>
}

/** Tells why there is no server for a cloud, for tap's `skip`; false if there is one. */
export function withoutServer(name: 'TUTTI_FAKE_GCS' | 'TUTTI_AZURITE'): string | false {
  return env[name] ? false : (env[`${name}_MISSING`] ?? `${name} is not set`)
}

/** Makes S3 from scripted servers that check signatures. */
export function scriptedS3Cloud(): Cloud {
  return {
    bucket: async () => {
      const s3 = await startScriptedS3('bucket')
      s3.pageSize = 2
      return Object.assign(s3, {
        uri: `s3://${s3.origin}/bucket/repo/`,
        env: {
          AWS_ACCESS_KEY_ID: S3_CREDENTIALS.accessKeyId,
          AWS_SECRET_ACCESS_KEY: S3_CREDENTIALS.secretAccessKey,
          AWS_SESSION_TOKEN: S3_CREDENTIALS.sessionToken,
          AWS_REGION: 'us-east-1',
        },
        put: (key: string, text: string) => {
          s3.objects.set(`repo/${key}`, text)
          return Promise.resolve()
        },
        remove: (key: string) => {
          s3.objects.delete(`repo/${key}`)
          return Promise.resolve()
        },
      })
    },
    page: ({ folders, next }) => {
      const found = folders.map(
        (name) => `<CommonPrefixes><Prefix>repo/${name}/</Prefix></CommonPrefixes>`,
      )
      const token = `<NextContinuationToken>${next}</NextContinuationToken>`
      return `<ListBucketResult>${found.join('')}<IsTruncated>${next !== ''}</IsTruncated>${token}</ListBucketResult>`
    },
    refusal: {
      answer: answerText('<Error><Code>AccessDenied</Code><Message>No.</Message></Error>', 403),
      text: /answered 403, AccessDenied: No\.$/,
    },
    close: () => Promise.resolve(),
  }
}

/** Starts Google Cloud Storage: fake-gcs-server, behind a proxy that checks tokens. */
export async function fakeGcsCloud(): Promise<Cloud> {
  const flags = ['-backend', 'memory', '-scheme', 'http', '-host', '127.0.0.1']
  const { server, port } = await onFreePort(async (port) => {
    const started = await startProcess(
      env['TUTTI_FAKE_GCS'] ?? '',
      [...flags, '-port', `${port}`],
      { readyWhen: (line) => line.includes('server started') },
    )
    return { server: started, port }
  })
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const email = 'reader@project.example'
  const key = { type: 'service_account', client_email: email, private_key: privateKey }
  const send = sender(port)
  let buckets = 0
  return {
    bucket: async () => {
      const name = `bucket-${(buckets += 1)}`
      await send(
        'POST',
        '/storage/v1/b',
        { 'content-type': 'application/json' },
        JSON.stringify({ name }),
      )
      const proxy = await startFaultProxy(port, ({ headers }) => {
        const token = /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1] ?? ''
        return isSignedToken(token, { publicKey, email }) ? undefined : answerText('no token', 401)
      })
      return Object.assign(proxy, {
        uri: `gs://${name}/repo`,
        env: {
          GOOGLE_APPLICATION_CREDENTIALS: JSON.stringify(key),
          CLOUD_STORAGE_EMULATOR_ENDPOINT: proxy.origin,
        },
        put: (key: string, text: string) =>
          send(
            'POST',
            `/upload/storage/v1/b/${name}/o?uploadType=media&name=${inRepository(key)}`,
            { 'content-type': 'application/octet-stream' },
            text,
          ),
        remove: (key: string) => send('DELETE', `/storage/v1/b/${name}/o/${inRepository(key)}`),
      })
    },
    page: ({ folders, next }) =>
      JSON.stringify({ prefixes: folders.map((name) => `repo/${name}/`), nextPageToken: next }),
    refusal: {
      answer: answerText('{"error":{"code":403,"message":"reader@project has no access."}}', 403),
      text: /answered 403, reader@project has no access\.$/,
    },
    close: async () => void (await server.stop()),
  }
}

const inRepository = (key: string) => encodeURIComponent(`repo/${key}`)

/** A JWT that the key has signed, with the right to read and nothing else. */
function isSignedToken(
  token: string,
  { publicKey, email }: { readonly publicKey: string; readonly email: string },
): boolean {
  const [head = '', body = '', signature = ''] = token.split('.')
  if (
    !verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${body}`),
      publicKey,
      Buffer.from(signature, 'base64url'),
    )
  )
    return false
  const claims: Readonly<Record<string, unknown>> = Object(
    JSON.parse(Buffer.from(body, 'base64url').toString()),
  )
  const seconds = systemClock.epochMs() / 1000
  return (
    claims['iss'] === email &&
    claims['sub'] === email &&
    claims['scope'] === 'https://www.googleapis.com/auth/devstorage.read_only' &&
    Number(claims['exp']) > seconds &&
    Number(claims['iat']) <= seconds
  )
}

/** The account of azurite, the same everywhere. */
const AZURITE = {
  account: 'devstoreaccount1',
  key: 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==',
}

/**
 * Starts Azure Blob Storage: azurite, which checks signatures, behind a proxy.
 *
 * @param o.token - the token that requests have in place of a signature. The proxy checks it, since azurite takes none over http.
 */
export async function azuriteCloud(o: { readonly token?: string } = {}): Promise<Cloud> {
  const flags = ['--blobPort', '0', '--inMemoryPersistence', '--disableTelemetry', '--silent']
  const server = await startProcess(process.execPath, [env['TUTTI_AZURITE'] ?? '', ...flags])
  const listens = /successfully listens on http:\/\/127\.0\.0\.1:(\d+)/
  const line = await server.waitForLine((text) => listens.test(text))
  const port = Number(listens.exec(line)?.[1])
  const account = { account: AZURITE.account, key: new SecretText(AZURITE.key) }
  const write = async (
    method: string,
    path: string,
    more: Readonly<Record<string, string>> = {},
    text = '',
  ): Promise<void> => {
    const url = new URL(`http://127.0.0.1:${port}/${AZURITE.account}${path}`)
    const headers = {
      ...more,
      'x-ms-date': new Date().toUTCString(),
      'x-ms-version': '2020-10-02',
      ...(text !== '' && { 'content-length': `${Buffer.byteLength(text)}` }),
    }
    await sender(port)(
      method,
      `${url.pathname}${url.search}`,
      signShared(account, { method, url, headers }),
      text,
    )
  }
  /** The request as it came, with a signature in place of its token. */
  const resign = ({ method = 'GET', url = '', headers }: IncomingMessage) => {
    const signed = Object.fromEntries(
      ['x-ms-date', 'x-ms-version', 'if-match'].flatMap((name) => {
        const value = headers[name]
        return typeof value === 'string' ? [[name, value]] : []
      }),
    )
    const at = new URL(url, `http://127.0.0.1:${port}`)
    return { ...headers, ...signShared(account, { method, url: at, headers: signed }) }
  }
  let buckets = 0
  return {
    bucket: async () => {
      const name = `bucket-${(buckets += 1)}`
      await write('PUT', `/${name}?restype=container`)
      const proxy = await startFaultProxy(
        port,
        ({ headers }) =>
          o.token === undefined || headers.authorization === `Bearer ${o.token}`
            ? undefined
            : answerText('no token', 401),
        o.token === undefined ? undefined : resign,
      )
      return Object.assign(proxy, {
        uri: `as://${AZURITE.account}/${name}/repo`,
        env: {
          AZURE_STORAGE_ACCOUNT: AZURITE.account,
          ...(o.token === undefined && { AZURE_STORAGE_KEY: AZURITE.key }),
          AZURE_STORAGE_SERVICE_ENDPOINT: `${proxy.origin}/${AZURITE.account}`,
        },
        // A name without a slash behind it, marked as a folder, is how an account with a hierarchical namespace has one.
        put: (key: string, text: string) => {
          const isFolder = key.endsWith('/')
          const mark = isFolder ? { 'x-ms-meta-hdi_isfolder': 'true' } : {}
          const path = `/${name}/repo/${encodeURI(key.replace(/\/$/, ''))}`
          return write('PUT', path, { 'x-ms-blob-type': 'BlockBlob', ...mark }, text)
        },
        remove: (key: string) => write('DELETE', `/${name}/repo/${encodeURI(key)}`),
      })
    },
    page: ({ folders, next }) => {
      const found = folders.map((name) => `<BlobPrefix><Name>repo/${name}/</Name></BlobPrefix>`)
      return `<?xml version="1.0"?><EnumerationResults ContainerName="c"><Blobs>${found.join('')}</Blobs><NextMarker>${next}</NextMarker></EnumerationResults>`
    },
    refusal: {
      answer: answerText(
        '<Error><Code>AuthorizationFailure</Code><Message>No rights.\nRequestId:1</Message></Error>',
        403,
      ),
      text: /answered 403, AuthorizationFailure: No rights\.$/,
    },
    close: async () => void (await server.stop()),
  }
}

/** Starts a server before another one that answers for it where a test wants that, or where `refuse` does. */
async function startFaultProxy(
  port: number,
  refuse: (request: IncomingMessage) => Answer | undefined = () => undefined,
  headersOf: (request: IncomingMessage) => OutgoingHttpHeaders = ({ headers }) => headers,
) {
  const proxy = { faults: [] as Answer[] }
  const server = await startArtifactServer((request, response) => {
    const fault = proxy.faults.shift() ?? refuse(request)
    if (fault !== undefined) return fault(request, response)
    const { method, url: path } = request
    const headers = headersOf(request)
    const passed = sendRequest({ port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    return request.pipe(passed)
  })
  return Object.assign(proxy, server)
}

/** Sends requests to a server of this machine, past the script. */
function sender(port: number) {
  return async (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body = '',
  ): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers,
      // Not a text, which would bring a type with it.
      ...(method !== 'DELETE' && { body: Buffer.from(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`)
  }
}

export function answerText(text: string, status = 200): Answer {
  return (_, response) => void response.writeHead(status).end(text)
}
