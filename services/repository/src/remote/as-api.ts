import { createHmac } from 'node:crypto'
import type { Clock, SecretText } from '@tutti/chassis'
import { type BucketApi, type BucketPage, encode, parseSize } from '../fetch/bucket.ts'
import { readElements, readTag } from '../fetch/bucket-xml.ts'
import type { HttpHeaders } from '../fetch/http-get.ts'

/** Later versions percent-encode some names, in an attribute's way. */
const VERSION = '2020-10-02'
/** Azure's codes for containers and accounts that need credentials. */
const DENIED = /^(PublicAccessNotPermitted|AccountIsDisabled|AuthenticationFailed|Authorization.*)$/

export interface AzureAccount {
  readonly account: string
  /** Key of the account, in base64. Without a key and a token, requests are not signed. */
  readonly key?: SecretText
  /** Gives the token of a request. */
  readonly token?: () => Promise<string>
  /** Address of the server that has the account's containers; Azure's if absent. */
  readonly endpoint?: URL
}

/** Builds the interface to a container of Azure Blob Storage. */
export function asApi(
  container: string,
  { clock, ...account }: AzureAccount & { readonly clock: Clock },
): BucketApi {
  const { endpoint = new URL(`https://${account.account}.blob.core.windows.net`) } = account
  const base = `${endpoint.href.replace(/\/$/, '')}/${container}`
  return {
    start: /^\W*(<\?xml[^>]*>\s*)?<EnumerationResults\b/,
    page: ({ prefix, token, isFolders }) => {
      const url = new URL(base)
      const delimiter = isFolders ? '&delimiter=%2F' : ''
      const marker = token === '' ? '' : `&marker=${encode(token)}`
      url.search = `restype=container&comp=list&include=metadata&prefix=${encode(prefix)}${delimiter}${marker}`
      return { url }
    },
    toPage,
    object: ({ key, tag }) => ({
      url: new URL(`${base}/${key.split('/').map(encode).join('/')}`),
      headers: { 'if-match': `"${tag}"` },
    }),
    tagOf: ({ etag = '' }) => toTag(etag),
    sign: async ({ url, headers = {} }) => {
      const date = new Date(clock.epochMs()).toUTCString()
      const dated = { ...headers, 'x-ms-date': date, 'x-ms-version': VERSION }
      const { token } = account
      if (token === undefined) return signShared(account, { method: 'GET', url, headers: dated })
      return { ...dated, authorization: `Bearer ${await token()}` }
    },
    toRefusal: (text) => {
      const code = readTag(text, 'Code')
      // Further lines are an id and a time.
      const [message = ''] = readTag(text, 'Message').split('\n')
      const parts = [code, message].filter((part) => part !== '')
      return { detail: parts.join(': '), isDenied: DENIED.test(code) }
    },
  }
}

/** The headers that a signature with Shared Key covers, in this order, before those of Azure. */
const SIGNED = [
  'content-encoding',
  'content-language',
  'content-length',
  'content-md5',
  'content-type',
  'date',
  'if-modified-since',
  'if-match',
  'if-none-match',
  'if-unmodified-since',
  'range',
]

/**
 * Signs a request with an account's key.
 *
 * @param headers - with names in lower case; `x-ms-date` and `x-ms-version` are among them.
 * @returns the headers with `authorization`; unchanged without a key.
 * @see Azure, "Authorize with Shared Key"
 */
export function signShared(
  { account, key }: AzureAccount,
  {
    method,
    url,
    headers,
  }: { readonly method: string; readonly url: URL; readonly headers: HttpHeaders },
): HttpHeaders {
  if (key === undefined) return headers
  const azures = Object.keys(headers).filter((name) => name.startsWith('x-ms-'))
  const parameters = [...url.searchParams].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const text = [
    method,
    ...SIGNED.map((name) => headers[name] ?? ''),
    ...azures.toSorted().map((name) => `${name}:${headers[name]}`),
    `/${account}${url.pathname}`,
    ...parameters.map(([name, value]) => `${name}:${value}`),
  ].join('\n')
  const secret = Buffer.from(key.reveal(), 'base64')
  const signature = createHmac('sha256', secret).update(text, 'utf8').digest('base64')
  return { ...headers, authorization: `SharedKey ${account}:${signature}` }
}

function toPage(xml: string): BucketPage | undefined {
  if (!xml.trimEnd().endsWith('</EnumerationResults>')) return undefined
  return {
    objects: readElements(xml, 'Blob').map(toObject),
    folders: readElements(xml, 'BlobPrefix').map((text) => readTag(text, 'Name')),
    next: readTag(xml, 'NextMarker'),
  }
}

function toObject(xml: string) {
  const name = readTag(xml, 'Name')
  // Accounts with a hierarchical namespace have blobs for their folders.
  const isFolder =
    readTag(xml, 'ResourceType') === 'directory' || readTag(xml, 'hdi_isfolder') === 'true'
  return {
    key: isFolder ? `${name}/` : name,
    tag: toTag(readTag(xml, 'Etag')),
    sizeBytes: parseSize(name, readTag(xml, 'Content-Length')),
  }
}

/** Lists have it without quotes. */
function toTag(etag: string): string {
  return etag.replaceAll('"', '')
}
