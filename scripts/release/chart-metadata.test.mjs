import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { IMAGES } from '../images/catalogue.mjs'

const root = resolve(import.meta.dirname, '..', '..')
const read = (path) => parse(readFileSync(join(root, path), 'utf8'))

const chart = read('charts/tutti/Chart.yaml')
const values = read('charts/tutti/values.yaml')
const byName = (list) => list.toSorted((a, b) => (a.name < b.name ? -1 : 1))
const annotation = (name) => parse(chart.annotations[`artifacthub.io/${name}`])

await test('Artifact Hub is told the custom resources of crds/', async (t) => {
  const wanted = globSync('crds/*.yaml', { cwd: root }).map((path) => {
    const { metadata, spec } = read(path)
    return {
      name: metadata.name,
      kind: spec.names.kind,
      versions: spec.versions.map(({ name }) => name),
    }
  })
  t.ok(wanted.length >= 3)
  const told = annotation('crds').map(({ name, kind, version }) => ({
    name,
    kind,
    versions: [version],
  }))
  t.same(byName(told), byName(wanted))
})

await test('and the images that the chart starts, of the chart and its version', async (t) => {
  const told = annotation('images')
  const ours = told.filter(({ image }) => image.startsWith('tutti/'))
  for (const { name, image, platforms } of ours) {
    t.ok(Object.hasOwn(IMAGES, name), name)
    t.equal(image, `tutti/${name}:${chart.appVersion}`)
    t.same(platforms, ['linux/amd64', 'linux/arm64'])
  }
  const started = [values.operator, values.router, values.step].map(({ image }) => image.repository)
  for (const repository of [...started, 'tutti/step-python']) {
    t.ok(
      told.some(({ image }) => image.startsWith(`${repository}:`)),
      repository,
    )
  }
  const { repository, tag } = values.nats.image
  t.ok(
    told.some(({ image }) => image === `${repository}:${tag}`),
    'NATS',
  )
})

await test('and licence, changes and links in the form that it reads', async (t) => {
  t.equal(chart.annotations['artifacthub.io/license'], read('package.json').license)
  const changes = annotation('changes')
  t.ok(changes.length > 0)
  for (const { kind, description } of changes) {
    t.match(kind, /^(added|changed|deprecated|removed|fixed|security)$/)
    t.match(description, /\S/)
  }
  for (const { name, url } of annotation('links')) t.match([name, url], [/\S/, /^https:/])
  const texts = Object.values(chart.annotations)
  t.same(
    texts.filter((text) => typeof text !== 'string'),
    [],
    'Helm wants texts',
  )
})
