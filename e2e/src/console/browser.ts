import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'

const PROGRAM = process.env['TUTTI_CHROMIUM']
/** Where pictures of the views go; none are made without it. */
const PICTURES = process.env['TUTTI_CONSOLE_PICTURES']

/** Why tests in a browser cannot run here; false if they can. */
export const NO_BROWSER =
  PROGRAM === undefined && (process.env['TUTTI_CHROMIUM_MISSING'] ?? 'TUTTI_CHROMIUM is not set')

/** A browser that ends with the test. */
export async function openBrowser(t: Test): Promise<Browser> {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const browser = await chromium.launch({ executablePath: PROGRAM ?? '', args })
  t.teardown(() => browser.close())
  return browser
}

/** A page, and what its console has complained of. */
export interface WatchedPage {
  readonly page: Page
  readonly complaints: string[]
  /** Where it asked for something that is not of its own server. */
  readonly foreign: string[]
}

export interface PageOptions {
  readonly port: number
  readonly scheme?: 'light' | 'dark'
}

export async function openPage(browser: Browser, o: PageOptions): Promise<WatchedPage> {
  const context = await browser.newContext({
    baseURL: `http://127.0.0.1:${o.port}`,
    colorScheme: o.scheme ?? 'light',
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  const complaints: string[] = []
  const foreign: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => {
    const url = request.url()
    const isOwn = url.startsWith(`http://127.0.0.1:${o.port}/`) || /^(blob|data):/.test(url)
    if (!isOwn) foreign.push(url)
  })
  return { page, complaints, foreign }
}

/** Lists what axe finds wrong with a page, as `rule: elements`. */
export async function axe(page: Page): Promise<readonly string[]> {
  const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
  // Text, since the page's own policy lets no further script in; that of the debugger is not the page's.
  await page.evaluate(await readFile(path, 'utf8'))
  const found: unknown = await page.evaluate('axe.run().then(({ violations }) => violations)')
  if (!Array.isArray(found)) throw new Error('axe gave no list')
  return found.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map((node: { target: string[] }) => node.target).join(', ')}`,
  )
}

/**
 * Keeps a picture of a view where TUTTI_CONSOLE_PICTURES names a folder.
 *
 * @param section - the heading of the part that it shows whole; absent for what is visible of the page, as far as it has content.
 */
export async function picture(page: Page, name: string, section?: string): Promise<void> {
  if (PICTURES === undefined) return
  const path = join(PICTURES, `${name}.png`)
  if (section !== undefined) {
    const heading = page.getByRole('heading', { level: 2, name: section })
    await page.locator('section.panel', { has: heading }).screenshot({ path })
    return
  }
  const end: unknown = await page.evaluate(
    'Math.min(innerHeight, document.querySelector("main").getBoundingClientRect().bottom)',
  )
  await page.screenshot({ path, clip: { x: 0, y: 0, width: 1280, height: Number(end) } })
}
