import { readFileSync } from 'node:fs'
import { ServeError } from '@tutti/errors'
import type { RestReply, RestRoute } from '@tutti/rest'

/** The files that `scripts/bundle-console.mjs` writes, by the path on which each is served. */
const ASSETS = [
  ['/console', 'index.html', 'text/html; charset=utf-8'],
  ['/console/console.js', 'console.js', 'text/javascript; charset=utf-8'],
  ['/console/console.css', 'console.css', 'text/css; charset=utf-8'],
  ['/console/icon.svg', 'icon.svg', 'image/svg+xml'],
] as const

/** The paths that need no identity, because they tell nothing about models. */
export const PUBLIC_ROUTES: ReadonlySet<string> = new Set(['/', ...ASSETS.map(([path]) => path)])

/** Headers of the page: it loads nothing from other hosts, runs no inline scripts, and no other page may frame it. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

/** Fields that the routes of all files of the page have in common. */
const PAGE = { method: 'GET', group: 'page', document: 'none' } as const

/** Reads the page's files and makes their routes. @throws ServeError SETTING_INVALID if the files were not built. */
export function assetRoutes(): readonly RestRoute[] {
  const home: RestReply = {
    status: 302,
    headers: { location: '/console' },
    parts: [],
    byteLength: 0,
  }
  return [
    { ...PAGE, path: '/', admission: 'control', answer: () => home },
    ...ASSETS.map(([path, file, type]): RestRoute => {
      const reply = fileReply(file, type)
      return { ...PAGE, path, admission: 'none', answer: () => reply }
    }),
  ]
}

function fileReply(file: string, type: string): RestReply {
  try {
    const body = readFileSync(new URL(`../dist/assets/${file}`, import.meta.url))
    const headers = { 'content-type': type }
    return { status: 200, headers, parts: [body], byteLength: body.byteLength }
  } catch (cause) {
    const text = `--console-port: the page is not built (${file}); try: npm run build`
    throw new ServeError('SETTING_INVALID', text, { cause })
  }
}
