// needs: chromium
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { chromium } from 'playwright-core'
import t from 'tap'
import { helpAddress, REASONS } from '../../services/errors/dist/index.js'
import { runCaptured } from '../setup/child.mjs'
import { serveFolder } from './serve-folder.mjs'

t.setTimeout(900_000)

const ROOT = resolve(import.meta.dirname, '..', '..')
const BASE = '/docs/'
const PROGRAM = process.env.TUTTI_CHROMIUM
/** All but two faults of VitePress's own theme: the groups of its menu have a button within a button, its search a hint in CSS. */
const AXE = JSON.stringify({
  rules: {
    'nested-interactive': { enabled: false },
    'label-content-name-mismatch': { enabled: false },
  },
})
const skip =
  PROGRAM === undefined && (process.env.TUTTI_CHROMIUM_MISSING ?? 'TUTTI_CHROMIUM is not set')

const out = t.testdir()
const built = await runCaptured(process.execPath, ['scripts/site.mjs', `--out=${out}`], {
  cwd: ROOT,
})
t.equal(built.code, 0, built.written)
const docs = join(out, BASE)
const [version] = JSON.parse(readFileSync(join(docs, 'versions.json'), 'utf8'))
const server = await serveFolder(out, 0)
t.teardown(() => server.close())
const origin = `http://127.0.0.1:${server.address().port}`

/** Reads a page as it is built: its links and pictures, and the anchors that it has. */
function readPage(file) {
  const text = readFileSync(join(docs, version, file), 'utf8')
  return {
    links: [...text.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, link]) =>
      link.replaceAll('&amp;', '&'),
    ),
    anchors: new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)),
  }
}

await t.test('each link, picture and anchor of the built pages is there', async (test) => {
  const files = globSync('**/*.html', { cwd: join(docs, version) })
  const pages = new Map(files.map((file) => [file, readPage(file)]))
  test.ok(files.length > 90, `${files.length} pages`)
  for (const [file, { links }] of pages) {
    for (const link of links.filter((one) => !/^(https?:|mailto:|data:|#$)/.test(one))) {
      const url = new URL(link, `${origin}${BASE}${version}/${file}`)
      const path = url.pathname
        .slice(`${BASE}${version}/`.length)
        .replace(/(^|\/)$/, '$1index.html')
      const page = pages.get(path)
      const isThere =
        page === undefined ? globSync(path, { cwd: join(docs, version) }).length > 0 : true
      test.ok(isThere, `${file}: ${link}`)
      const anchor = decodeURIComponent(url.hash.slice(1))
      if (page !== undefined && anchor !== '') test.ok(page.anchors.has(anchor), `${file}: ${link}`)
    }
  }
})

await t.test('every block of code but plain text has colours', (test) => {
  const blocks = globSync('**/*.html', { cwd: join(docs, version) }).flatMap((file) => [
    ...readFileSync(join(docs, version, file), 'utf8').matchAll(
      /<div class="language-(\w+) [^]*?<\/pre>/g,
    ),
  ])
  test.ok(blocks.length > 50, `${blocks.length} blocks`)
  const plain = blocks.filter(([block]) => !block.includes('--shiki-light:'))
  test.strictSame([...new Set(plain.map(([, language]) => language))], ['text'])
  test.end()
})

await t.test('each JSON Schema is published at the address that it bears', async (test) => {
  const schemas = join(ROOT, 'schemas')
  const files = globSync('**/*.json', { cwd: schemas })
  test.ok(files.length > 10, `${files.length} schemas`)
  for (const file of files) {
    const text = readFileSync(join(schemas, file), 'utf8')
    const answer = await fetch(`${origin}${new URL(JSON.parse(text).$id).pathname}`)
    test.equal(await answer.text(), text, file)
  }
})

await t.test('the site in a browser', { skip }, async (test) => {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const browser = await chromium.launch({ executablePath: PROGRAM, args })
  test.teardown(() => browser.close())
  const context = await browser.newContext({ baseURL: origin, reducedMotion: 'reduce' })
  const page = await context.newPage()
  const complaints = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => {
    const isOwn = request.url().startsWith(`${origin}/`) || /^(blob|data):/.test(request.url())
    if (!isOwn) complaints.push(`asked ${request.url()}`)
  })

  await page.goto(BASE)
  await page.getByRole('heading', { level: 1, name: 'Tutti' }).waitFor()
  test.equal(new URL(page.url()).pathname, `${BASE}${version}/`)
  const menu = page.getByRole('combobox', { name: 'Version' })
  test.equal(await menu.inputValue(), version)
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
  await page.evaluate(readFileSync(axe, 'utf8'))
  const violations = await page.evaluate(`axe.run(${AXE}).then((found) => found.violations)`)
  test.same(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(', ')}`),
    [],
  )

  for (const [word, title] of [
    ['hedge', 'Hedging'],
    ['QUEUE_FULL', 'QUEUE_FULL'],
    ['sequence_batching', 'Sequences'],
  ]) {
    await page.goto(`${BASE}${version}/`)
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('searchbox').fill(word)
    const results = page.locator('#localsearch-list li')
    await results.filter({ hasText: title }).first().waitFor()
    test.ok(await results.count(), word)
  }

  await page.goto(new URL(helpAddress('QUEUE_FULL')).href.replace(/^https:\/\/[^/]+/, ''))
  await page.getByRole('heading', { level: 3, name: 'QUEUE_FULL' }).waitFor()
  test.equal(new URL(page.url()).pathname, `${BASE}${version}/errors.html`)
  test.equal(new URL(page.url()).hash, '#queue_full')
  for (const reason of Object.keys(REASONS)) {
    const { hash } = new URL(helpAddress(reason))
    test.equal(await page.locator(hash).count(), 1, reason)
  }
  test.same(complaints, [])
})
