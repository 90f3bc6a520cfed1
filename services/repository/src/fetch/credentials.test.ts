import { readFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import { createTestCertificates } from '@tutti/chassis/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { readElements, readTag } from './bucket-xml.ts'
import { readCredentials } from './credentials.ts'
import { parseSourceUri, showUri } from './source-uri.ts'

const read = (t: Test, secret: Readonly<Record<string, string>>) =>
  readCredentials(t.testdir(secret))

const NO_CERTIFICATE = '-----BEGIN CERTIFICATE-----\nhidden\n-----END CERTIFICATE-----'

/** A certificate in PEM. */
async function readAuthority(t: Test): Promise<string> {
  const { caFile } = await createTestCertificates(t.testdir())
  return (await readFile(caFile, 'utf8')).trim()
}

await t.test('keys become credentials', async (t) => {
  const ca = await readAuthority(t)
  t.same(await read(t, { other: 'x' }), {})
  const basic = await read(t, { username: 'me', password: 'hidden\n' })
  t.equal(basic.authorization?.reveal(), 'Basic bWU6aGlkZGVu')
  const withToken = await read(t, { token: 'hidden' })
  t.equal(withToken.authorization?.reveal(), 'Bearer hidden')
  const aws = await read(t, {
    AWS_ACCESS_KEY_ID: 'id',
    AWS_SECRET_ACCESS_KEY: 'hidden',
    AWS_SESSION_TOKEN: 'hidden too',
    AWS_REGION: 'eu-west-1',
    AWS_ENDPOINT_URL: 'http://minio:9000',
    'ca.crt': ca,
  }).catch((error: unknown) => error)
  t.match(aws, {
    message: 'key AWS_SESSION_TOKEN of the secret has characters that no header can carry',
  })
  const whole = await read(t, {
    AWS_ACCESS_KEY_ID: 'id',
    AWS_SECRET_ACCESS_KEY: 'hidden',
    AWS_REGION: 'eu-west-1',
    AWS_ENDPOINT_URL: 'http://minio:9000',
    'ca.crt': ca,
  })
  t.match(whole, { awsRegion: 'eu-west-1', ca, aws: { accessKeyId: 'id' } })
  t.equal(whole.awsEndpoint?.href, 'http://minio:9000/')
  for (const one of [basic, withToken, whole]) {
    t.notMatch(`${inspect(one, { depth: 9 })}${JSON.stringify(one)}`, 'hidden')
  }
})

await t.test('a token of the environment is not for the Hub that a Secret names', async (t) => {
  const folder = t.testdir({ HF_ENDPOINT: 'https://own.example' })
  for (const HF_ENDPOINT of [undefined, 'https://mirror.example']) {
    const { hub } = await readCredentials(folder, { HF_TOKEN: 'hidden', HF_ENDPOINT })
    t.equal(hub?.endpoint?.href, 'https://own.example/')
    t.equal(hub?.token, undefined)
  }
})

await t.test('Hubs and registries have credentials of their own', async (t) => {
  const env = { HF_TOKEN: 'of the environment', HF_ENDPOINT: 'https://mirror.example' }
  await t.rejects(readCredentials(undefined, env), {
    message:
      'key HF_TOKEN of the secret or the environment has characters that no header can carry',
  })
  const known = { ...env, HF_TOKEN: 'hidden' }
  const outside = await readCredentials(undefined, known)
  t.equal(outside.hub?.token?.reveal(), 'hidden')
  t.equal(outside.hub?.endpoint?.href, 'https://mirror.example/')
  const both = await readCredentials(t.testdir({ HF_TOKEN: 'of-secret' }), known)
  t.equal(both.hub?.token?.reveal(), 'of-secret', 'the Secret comes first')
  t.equal(both.hub?.endpoint?.href, 'https://mirror.example/')
  const auths = {
    'registry.example:5000': { auth: Buffer.from('me:hidden').toString('base64') },
    'https://index.docker.io/v1/': { username: 'me', password: 'hidden' },
    'https://old.example/v2/': { username: 'me', password: 'hidden' },
    'shared.example/team': { username: 'me', password: 'hidden' },
    'empty.example': {},
  }
  const { registries } = await read(t, { '.dockerconfigjson': JSON.stringify({ auths }) })
  t.same(
    [...(registries ?? [])].map(([host, text]) => [host, text.reveal()]),
    [
      ['registry.example:5000', 'Basic bWU6aGlkZGVu'],
      ['docker.io', 'Basic bWU6aGlkZGVu'],
      ['old.example', 'Basic bWU6aGlkZGVu'],
      ['shared.example/team', 'Basic bWU6aGlkZGVu'],
    ],
  )
  t.notMatch(inspect([outside, registries], { depth: 9 }), 'hidden')
})

await t.test('what cannot be used is refused by key, without its value', async (t) => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [{ password: 'hidden' }, 'key username of the secret is missing beside password'],
    [{ token: 'hidden', username: 'me' }, 'key token of the secret came with username'],
    [{ '.dockerconfigjson': 'hidden' }, 'key .dockerconfigjson of the secret is no JSON'],
    [
      { '.dockerconfigjson': '{"auths":{"a":{"auth":"hid den"}}}' },
      'key .dockerconfigjson of the secret has an auth that is not base64',
    ],
    [{ HF_ENDPOINT: 'hidden' }, 'key HF_ENDPOINT of the secret or the environment is no http'],
    [{ token: 'hid\nden' }, 'key token of the secret has characters that no header can carry'],
    [{ AWS_ACCESS_KEY_ID: 'hidden' }, 'key AWS_SECRET_ACCESS_KEY of the secret is missing'],
    [{ AWS_SECRET_ACCESS_KEY: 'hidden' }, 'key AWS_ACCESS_KEY_ID of the secret is missing'],
    [{ AWS_REGION: 'hid\nden' }, 'key AWS_REGION of the secret has characters that no header'],
    [{ 'ca.crt': 'hidden' }, 'key ca.crt of the secret has no certificate in PEM'],
    [{ 'ca.crt': NO_CERTIFICATE }, 'key ca.crt of the secret has no certificate in PEM'],
    [{ AWS_ENDPOINT_URL: 'hidden' }, 'key AWS_ENDPOINT_URL of the secret is no http(s)://HOST'],
    [
      { AWS_ENDPOINT_URL: 'http://u:hidden@h' },
      'key AWS_ENDPOINT_URL of the secret is no http(s)://HOST',
    ],
  ]
  for (const [secret, text] of cases) {
    const error: unknown = await read(t, secret).catch((thrown: unknown) => thrown)
    t.match(error, { reason: 'SETTING_INVALID' })
    t.ok(String(error).includes(text), String(error))
    t.notMatch(String(error), 'hidden')
  }
})

await t.test('any address is read or refused, and never shown whole', (t) => {
  const scheme = fc.constantFrom('http://', 'https://', 's3://', 'pvc://', 'file:', '')
  const part = fc.oneof(fc.string(), fc.webUrl(), fc.constantFrom('a:b@c', 'b/../c', '?x#y'))
  fc.assert(
    fc.property(scheme, part, (start, rest) => {
      const text = `${start}${rest}`
      try {
        const { kind } = parseSourceUri(text)
        if (kind !== 'http' && kind !== 's3') return false
      } catch (error) {
        if (Object(error).reason !== 'FLAG_INVALID') return false
      }
      return !showUri(`https://me:hidden@h/p?hidden#${rest}`).includes('hidden')
    }),
  )
  t.end()
})

await t.test('the little of XML', (t) => {
  const xml = '<A><K>a&amp;b&lt;&#x41;&#66;&#x110000;</K></A><A><K></K></A><A><K>'
  t.same(
    readElements(xml, 'A').map((one) => readTag(one, 'K')),
    ['a&b<AB&#x110000;', ''],
  )
  t.equal(readTag(xml, 'Nothing'), '')
  fc.assert(
    fc.property(fc.string(), (text) => {
      readTag(text, 'A')
      return readElements(text, 'A').length >= 0
    }),
  )
  t.end()
})
