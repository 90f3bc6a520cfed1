import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import { answerStatus, cutAfter, serveBytes, tarArchive } from '@tutti/repository/testing'
import type { Test } from 'tap'
import { runTutti } from '../serving.ts'
import { toFloats } from '../tensors.ts'
import { adderFrom, INPUT, SPACE, sumOf } from './adders.ts'
import { startArtifactHost } from './artifact-host.ts'
import { apply, createNamespace, getObject, kubectl } from './kubectl.ts'
import { S3_KEYS, startS3Gateway } from './s3-gateway.ts'
import { sideBySide } from './side-by-side.ts'

const STORAGE = 'storage'
const NO_DIGEST = `sha256:${'0'.repeat(64)}`
const TOKEN = 'only-for-those-who-know-it'
const ROUTER = 'service/tutti-router-http'

/** Puts a Secret there, or in the place of the one that is. */
function putSecret(name: string, stringData: Readonly<Record<string, string>>): Promise<void> {
  const metadata = { namespace: SPACE, name }
  return apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData })
}

const modelOf = (name: string): Promise<PlainObject> =>
  getObject('model', name, `--namespace=${SPACE}`)

/** Waits until a Model says that its files cannot be had, and compares with what it says. */
async function says(t: Test, name: string, exitCode: number, message: RegExp): Promise<void> {
  const found = await until(
    () => `${name} says ${message}`,
    async () => {
      const { status } = await modelOf(name)
      const { lastFailure: failure, conditions = [] } = status ?? {}
      const artifacts = conditions.find(({ type }: PlainObject) => type === 'ArtifactsReady')
      const isRight = artifacts?.reason === 'FetchFailed' && message.test(failure?.message ?? '')
      return isRight && { failure, conditions }
    },
  )
  t.match(found.failure, { reason: 'FetchFailed', exitCode })
  t.comment(`${name}: ${found.failure.message}`)
  const ready = found.conditions.find(({ type }: PlainObject) => type === 'Ready')
  t.equal(ready.status, 'False')
}

/** Waits until the pod of a Model has written so many bytes of an archive that it fetches. */
function hasFetched(name: string): (position: number) => Promise<void> {
  const place = [`deployment/${name}-step`, '--container=fetch', `--namespace=${SPACE}`]
  const size = ['sh', '-c', 'stat --format=%s /models/.*.fetch/*/archive']
  return async (position) => {
    await until(`${name} has fetched ${position} bytes`, async () => {
      // There is no such file yet, or no container.
      const written = await kubectl('exec', ...place, '--', ...size).catch(() => '0')
      return Number(written) >= position
    })
  }
}

/** A Model that never heals: its pod would try again and again, and take the processor from others. */
async function remove(name: string): Promise<void> {
  await kubectl('delete', 'model', name, `--namespace=${SPACE}`, '--wait=false')
}

/** Waits until a Model is Ready, without its having been changed, and asks it. */
async function answers(t: Test, name: string): Promise<void> {
  const wait = ['wait', '--for=condition=Ready', '--timeout=300s', `--namespace=${SPACE}`]
  await kubectl(...wait, `model/${name}`)
  const { spec } = await getObject(ROUTER, `--namespace=${SPACE}`)
  const { name: input, datatype, shape } = INPUT
  const inputs = [{ name: input, datatype, shape, data: [...toFloats(INPUT)] }]
  const url = `http://${spec.clusterIP}:8000/v2/models/${name}/infer`
  const answer = await until(`${name} is served`, async () => {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify({ inputs }) })
    return response.ok && (await response.json())
  })
  const [{ data }] = (answer as { readonly outputs: readonly [{ readonly data: number[] }] })
    .outputs
  t.same(data, [...toFloats({ data: sumOf(1) })])
}

/** As `tutti fetch` tells it. */
async function treeDigest(folder: string): Promise<string> {
  const args = ['fetch', '--verify', folder, '--print-digest', '--log-info=false']
  const { code, out, err } = await runTutti(args)
  if (code !== 0) throw new Error(err)
  return out.trim()
}

/** A tar archive of a folder's contents. */
async function archiveOf(folder: string): Promise<Buffer> {
  return tarArchive((await filesOf(folder)).map(([name, data]) => ({ name, data })))
}

/** The files of a folder, by their paths in it. */
async function filesOf(folder: string): Promise<readonly (readonly [string, Buffer])[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  return await Promise.all(
    paths.map(async (path) => [relative(folder, path), await readFile(path)] as const),
  )
}

/** As `storage.digest` of an archive. */
function sha256(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** Files of one Model. */
interface Files {
  readonly folder: string
  /** Their digest, as `tutti fetch` tells it. */
  readonly tree: string
}

async function showS3(t: Test, { folder, tree }: Files): Promise<void> {
  const inBucket = (prefix: string, { digest = tree, secret = 's3' } = {}) => ({
    storageUri: `s3://models/${prefix}`,
    storage: { secretRef: { name: secret }, digest },
  })
  await createNamespace(t, STORAGE)
  const s3 = await startS3Gateway(STORAGE)
  await s3.createBucket('models')
  for (const [name, content] of await filesOf(folder)) {
    await s3.put('models', `x/plus-one/${name}`, content)
  }
  const common = { AWS_ENDPOINT_URL: s3.origin, AWS_ACCESS_KEY_ID: S3_KEYS.id }
  const right = { ...common, AWS_SECRET_ACCESS_KEY: S3_KEYS.secret }
  await putSecret('s3', right)

  await sideBySide(t, {
    'wrong credentials, then right ones': async (t) => {
      await putSecret('s3-keys', { ...common, AWS_SECRET_ACCESS_KEY: 'another' })
      await apply(adderFrom('s3-keys', inBucket('x/plus-one', { secret: 's3-keys' })))
      await says(t, 's3-keys', 11, /403/)
      await putSecret('s3-keys', right)
      await answers(t, 's3-keys')
    },

    'an object that is missing, then is there': async (t) => {
      await apply(adderFrom('s3-late', inBucket('late/plus-one')))
      await says(t, 's3-late', 10, /late\/plus-one/)
      for (const [name, content] of await filesOf(folder)) {
        await s3.put('models', `late/plus-one/${name}`, content)
      }
      await answers(t, 's3-late')
    },

    'other content than the digest wants': async (t) => {
      await apply(adderFrom('s3-digest', inBucket('x/plus-one', { digest: NO_DIGEST })))
      await says(t, 's3-digest', 14, /want sha256:0{64}/)
      await remove('s3-digest')
    },
  })

  await t.test('a server that is away, then comes back', async (t) => {
    await s3.scale(0)
    await apply(adderFrom('s3-away', inBucket('x/plus-one')))
    await says(t, 's3-away', 12, /./)
    await s3.scale(1)
    await answers(t, 's3-away')
  })
}

/** A server of an archive, and what a Model says that has its files from there, with a Secret of the server's name. */
async function openHost(t: Test, name: string, archive: Buffer) {
  const host = await startArtifactHost(t)
  const of = (digest = sha256(archive)) => ({
    storageUri: `${host.origin}/model.tar`,
    storage: { secretRef: { name }, digest },
  })
  const allow = (token: string) => putSecret(name, { token, 'ca.crt': host.authority })
  await allow(TOKEN)
  return { host, of, allow, bytes: serveBytes(archive, '"one"') }
}

async function showHttps(t: Test, { folder }: Files): Promise<void> {
  const archive = await archiveOf(folder)
  await sideBySide(t, {
    'wrong credentials, then right ones': async (t) => {
      const { host, of, allow, bytes } = await openHost(t, 'https-guarded', archive)
      host.script((request, response) => {
        const isKnown = request.headers.authorization === `Bearer ${TOKEN}`
        return (isKnown ? bytes : answerStatus(401))(request, response)
      })
      await allow('another')
      await apply(adderFrom('https-token', of()))
      await says(t, 'https-token', 11, /401/)
      await allow(TOKEN)
      await answers(t, 'https-token')
    },
    'what is missing, wrong or cut': (t) => showBadDownloads(t, archive),
  })
}

async function showBadDownloads(t: Test, archive: Buffer): Promise<void> {
  const { host, of, bytes } = await openHost(t, 'https', archive)

  await t.test('a file that is missing, then is there', async (t) => {
    host.script(answerStatus(404))
    await apply(adderFrom('https-late', of()))
    await says(t, 'https-late', 10, /model\.tar.*404/)
    host.script(bytes)
    await answers(t, 'https-late')
  })

  await t.test('other content than the digest wants', async (t) => {
    host.script(bytes)
    await apply(adderFrom('https-digest', of(NO_DIGEST)))
    await says(t, 'https-digest', 14, /want sha256:0{64}/)
    // It would ask again, now and then.
    await kubectl('delete', 'model', 'https-digest', `--namespace=${SPACE}`)
    const pods = ['pods', '--selector=tutti.dev/model=https-digest', `--namespace=${SPACE}`]
    await kubectl('wait', '--for=delete', '--timeout=120s', ...pods)
  })

  await t.test('a download that is cut begins anew', async (t) => {
    const half = Math.floor(archive.byteLength / 2)
    const before = host.heard.length
    host.script(cutAfter(half, archive, '"one"', hasFetched('https-cut')), bytes)
    await apply(adderFrom('https-cut', of()))
    await answers(t, 'https-cut')
    t.equal(host.heard.length - before, 2)
  })
}

async function showClaim(t: Test, { tree }: Files): Promise<void> {
  const inClaim = (path: string, digest = tree) => ({
    storageUri: `pvc://models/${path}`,
    storage: { digest },
  })
  await apply(adderFrom('pvc-right', inClaim('plus-one')))
  await apply(adderFrom('pvc-digest', inClaim('plus-one', NO_DIGEST)))
  await answers(t, 'pvc-right')
  await says(t, 'pvc-digest', 14, /want sha256:0{64}/)
  await remove('pvc-digest')
  await apply(adderFrom('pvc-missing', inClaim('nowhere')))
  // The kubelet makes a folder that is not there.
  await says(t, 'pvc-missing', 10, /is empty/)
  await remove('pvc-missing')
}

/**
 * Models with files from S3, https and a claim: what they say while they cannot have them, and that they heal. All three at once, as
 * each waits for pods that try again.
 *
 * @param models - what the claim `models` holds.
 */
export async function showStorage(t: Test, models: string): Promise<void> {
  const folder = join(models, 'plus-one')
  const files = { folder, tree: await treeDigest(folder) }
  await sideBySide(t, {
    s3: (t) => showS3(t, files),
    https: (t) => showHttps(t, files),
    pvc: (t) => showClaim(t, files),
  })
}
