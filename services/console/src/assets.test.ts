import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { assetRoutes, PAGE_HEADERS, PUBLIC_ROUTES } from './assets.ts'

const bundle = (file: string) =>
  readFileSync(new URL(`../dist/assets/${file}`, import.meta.url), 'utf8')

await t.test('the page stays small', async (t) => {
  t.ok(gzipSync(bundle('console.js')).byteLength < 300 * 1024)
})

await t.test('the page holds no script of its own, and names no other host', async (t) => {
  const html = bundle('index.html')
  t.notMatch(html, /<script(?![^>]*src=)|\son\w+=|style=/)
  t.notMatch(html + bundle('console.css'), /https?:\/\//)
  const policy = PAGE_HEADERS['content-security-policy'] ?? ''
  t.match(policy, /^default-src 'none'/)
  t.notMatch(policy, /unsafe|\*|https?:/)
})

await t.test('without an identity a caller gets the files, and nothing else', async (t) => {
  t.same(new Set(assetRoutes().map(({ path }) => path)), PUBLIC_ROUTES)
})
