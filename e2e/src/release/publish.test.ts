// needs: apiserver, registry
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findKubeBinaries, installCrd, startApiServer, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { CHART, find, operatorArgsOf, parseAll } from '../chart/helm.ts'
import { ROOT, runProgram, VERSION } from '../serving.ts'
import { type PublishedRelease, publishRelease } from './publish.ts'
import { withoutRegistry } from './registry.ts'

t.setTimeout(120_000)

interface Index {
  readonly manifests: readonly { readonly digest: string; readonly platform: object }[]
}

interface Artifact {
  readonly config: { readonly mediaType: string }
  readonly layers: readonly { readonly digest: string; readonly mediaType: string }[]
}

const skip = withoutRegistry() || withoutKube('helm')
const HELM = join(findKubeBinaries() ?? '', 'helm')
const MODELS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/models.tutti.dev'

await t.test('a release in a registry', { skip }, async (t) => {
  const release = await publishRelease(t)
  const { registry, prefix, out, images, pushed } = release

  await t.test('each image is an index of both platforms, as they were built', async (t) => {
    for (const name of new Set(images.map((image) => image.name))) {
      const response = await registry.get(`some-owner/tutti/${name}/manifests/${VERSION}`)
      t.equal(response.headers.get('content-type'), 'application/vnd.oci.image.index.v1+json')
      const digest = response.headers.get('docker-content-digest')
      t.ok(pushed.includes(`${prefix}/tutti/${name}@${digest}\n`), name)
      const { manifests } = (await response.json()) as Index
      const found = manifests.map(({ digest, platform }) => ({ digest, ...platform }))
      const built = images.filter((image) => image.name === name)
      t.same(
        found,
        built.map(({ digest, architecture }) => ({ digest, architecture, os: 'linux' })),
      )
      for (const { architecture } of built) {
        const sbom = await readFile(join(out, `${name}-${architecture}.sbom.json`), 'utf8')
        t.match(sbom, `pkg:generic/${name}@1?arch=${architecture}`)
      }
    }
  })

  await t.test('helm renders the chart from there, with the images of the release', async (t) => {
    const args = [`oci://${prefix}/charts/tutti`, `--version=${VERSION}`, '--plain-http']
    const helm = (...words: readonly string[]) =>
      runProgram(HELM, [...words, ...args], { env: registry.env })
    const rendered = await helm('template', 'tutti', '--kube-version=1.34.4', '--namespace=x')
    t.equal(rendered.code, 0, rendered.err)
    const objects = parseAll(rendered.out)
    const [container] = find(objects, 'Deployment', 'tutti-operator')['spec'].template.spec
      .containers
    t.equal(container.image, `${prefix}/tutti/operator:${VERSION}`)
    const flags = operatorArgsOf(objects)
    for (const name of ['step', 'step-python', 'router']) {
      t.ok(flags.includes(`--${name}-image=${prefix}/tutti/${name}:${VERSION}`), name)
    }
    t.match(find(objects, 'StatefulSet')['spec'].template.spec.containers[0].image, /^nats:/)
    const metadata = (await helm('show', 'chart')).out
    t.notMatch(metadata, /OWNER/)
    const chart = parse(metadata)
    t.match(chart, { version: VERSION, home: 'https://git.example/some/tutti' })
    t.match(chart.annotations['artifacthub.io/images'], `image: ${prefix}/tutti/step:${VERSION}`)
    const readme = (await helm('show', 'readme')).out
    t.match(readme, `helm install tutti oci://${prefix}/charts/tutti --version ${VERSION}`)
    t.match(readme, `](https://git.example/some/tutti/blob/v${VERSION}/docs/upgrade.md)`)
    t.notMatch(readme, /OWNER|\]\(\.\./)
  })

  await t.test('Artifact Hub finds its file beside the chart', async (t) => {
    const response = await registry.get('some-owner/charts/tutti/manifests/artifacthub.io')
    const { config, layers } = (await response.json()) as Artifact
    t.equal(config.mediaType, 'application/vnd.cncf.artifacthub.config.v1+yaml')
    const [{ digest, mediaType } = { digest: '', mediaType: '' }] = layers
    t.equal(mediaType, 'application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml')
    const text = await (await registry.get(`some-owner/charts/tutti/blobs/${digest}`)).text()
    t.equal(text, await readFile(`${ROOT}charts/artifacthub-repo.yml`, 'utf8'))
  })

  await t.test('face.yaml names the images of the release', async (t) => {
    const example = await readFile(join(out, 'face.yaml'), 'utf8')
    const wanted = `storageUri: image://${prefix}/tutti/samples:${VERSION}/model_repository/`
    t.equal(example.split(wanted).length, 4)
    t.notMatch(example, 'image://tutti/')
  })

  await t.test('helm upgrades a release from there, and its CRDs', async (t) => {
    await upgrade(t, release)
  })

  await t.test('a step that cannot be done says why', (t) => refusals(t, release))
})

async function upgrade(t: Test, { registry, prefix }: PublishedRelease): Promise<void> {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const env = { ...registry.env, KUBECONFIG: await server.kubeconfig() }
  const helm = (...args: readonly string[]) =>
    runProgram(HELM, [...args, '--namespace=tutti-system'], { env })
  await installCrd(server.plain, parse(await readFile(`${ROOT}crds/tutti.dev_models.yaml`, 'utf8')))
  const versions = async () => (await server.plain.get(MODELS))['spec'].versions
  // As this server stores it, with its defaults.
  const wanted = await versions()

  const chartOfBefore = join(t.testdir(), 'tutti')
  await cp(CHART, chartOfBefore, { recursive: true })
  const file = join(chartOfBefore, 'files', 'crds', 'tutti.dev_models.yaml')
  const crd = await readFile(file, 'utf8')
  await writeFile(file, crd.replace(/description: .*/, 'description: as it was before.'))
  const install = ['install', 'tutti', chartOfBefore, '--create-namespace']
  const refused = await helm(...install)
  t.match(refused.err, /cannot be imported into the current release/)
  const installed = await helm(...install, '--take-ownership')
  t.equal(installed.code, 0, installed.err)
  t.notSame(await versions(), wanted, 'the CRD is the one of before')

  const chart = [`oci://${prefix}/charts/tutti`, `--version=${VERSION}`, '--plain-http']
  const upgraded = await helm('upgrade', 'tutti', ...chart, '--reset-then-reuse-values')
  t.equal(upgraded.code, 0, upgraded.err)
  t.same(await versions(), wanted, 'the CRD is that of this release')
  const path = '/apis/apps/v1/namespaces/tutti-system/deployments/tutti-operator'
  const [container] = (await server.plain.get(path))['spec'].template.spec.containers
  t.equal(container.image, `${prefix}/tutti/operator:${VERSION}`)
}

async function refusals(t: Test, { run, registry, prefix, out }: PublishedRelease): Promise<void> {
  const where = `--registry=${prefix}`
  const cases: readonly [RegExp, string, ...string[]][] = [
    [/want a command/, 'publish'],
    [/want --images FOLDER/, 'push', where],
    [/no images are there/, 'push', where, `--images=${out}`],
    [/--registry https:\/\/x: want HOST\/PATH/, 'pack', '--registry=https://x'],
    [/tag v0\.0\.0: package\.json has version/, 'check', 'v0.0.0'],
  ]
  for (const [message, command, ...flags] of cases) {
    const { code, err } = await run(command, ...flags)
    t.equal(code, 1, command)
    t.match(err, message)
  }
  // A password that is wrong.
  await writeFile(join(registry.env['DOCKER_CONFIG'] ?? '', 'config.json'), '{"auths":{}}')
  const images = `--images=${join(out, '..', 'amd64')}`
  const { code, err } = await run('push', where, images, '--plain-http')
  t.equal(code, 1)
  t.match(err, /oras cp failed with code 1/)
}
