// needs: apiserver, registry, cosign
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { env } from 'node:process'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { runProgram } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { publishRelease } from './publish.ts'
import { withoutRegistry } from './registry.ts'

t.setTimeout(600_000)

const { TUTTI_COSIGN: cosign = '', TUTTI_COSIGN_MISSING: missing = '' } = env
const skip = withoutRegistry() || withoutKube('helm') || missing || false

/** No service of Sigstore has been asked, so none is to be. */
const OFFLINE = ['--key=cosign.pub', '--insecure-ignore-tlog=true']

await t.test('a release that is signed with a key pair', { skip }, async (t) => {
  const release = await publishRelease(t)
  const keys = await tempFolder(t)
  const run = (...args: readonly string[]) =>
    runProgram(cosign, args, { cwd: keys, env: { ...release.registry.env, COSIGN_PASSWORD: 'x' } })
  t.match(await run('generate-key-pair'), { code: 0 })
  // The next steps of the release have it in their environment too.
  release.registry.env['COSIGN_PASSWORD'] = 'x'
  const signed = await release.run('sign', `--key=${join(keys, 'cosign.key')}`, '--plain-http')
  t.equal(signed.code, 0, signed.err)
  const verify = (command: string, ...args: readonly string[]) =>
    run(command, ...OFFLINE, '--allow-http-registry', ...args)

  await t.test('every image, index and chart has a signature of the key', async (t) => {
    const references = release.pushed.trim().split('\n')
    t.equal(references.length, 5 * 3 + 1)
    for (const reference of references) t.match(await verify('verify', reference), { code: 0 })
  })

  await t.test('the image of each platform has its SBOM, and the index has none', async (t) => {
    for (const { name, architecture, digest } of release.images) {
      const reference = `${release.prefix}/tutti/${name}@${digest}`
      const { code, out, err } = await verify('verify-attestation', '--type=cyclonedx', reference)
      t.equal(code, 0, err)
      const { predicate } = JSON.parse(Buffer.from(JSON.parse(out).payload, 'base64').toString())
      t.equal(predicate.components[0].purl, `pkg:generic/${name}@1?arch=${architecture}`)
    }
  })

  await t.test('the files have signed checksums, which tell a change', async (t) => {
    const signature = ['--bundle', join(release.out, 'SHA256SUMS.sigstore.json')]
    const sums = join(release.out, 'SHA256SUMS')
    const check = () => runProgram('sha256sum', ['--check', 'SHA256SUMS'], { cwd: release.out })
    t.match(await run('verify-blob', ...OFFLINE, ...signature, sums), { code: 0 })
    t.match(await check(), { code: 0, out: /^face\.yaml: OK$/m })
    await appendFile(join(release.out, 'face.yaml'), '# changed\n')
    t.match(await check(), { code: 1, out: /^face\.yaml: FAILED$/m })
    await writeFile(sums, '')
    t.match(await run('verify-blob', ...OFFLINE, ...signature, sums), { code: 1 })
  })

  await t.test('another key is not the one that signed', async (t) => {
    await run('generate-key-pair', '--output-key-prefix=other')
    const [reference = ''] = release.pushed.split('\n')
    const args = ['--key=other.pub', '--insecure-ignore-tlog=true', '--allow-http-registry']
    t.match(await run('verify', ...args, reference), { code: 1 })
  })
})
