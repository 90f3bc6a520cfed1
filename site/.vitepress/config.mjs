// The site out of the Markdown of the checkout, as it is: scripts/site.mjs builds it, and says where it goes.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { env } from 'node:process'
import { sections } from '../navigation.mjs'
import { anchorOf, findPages, LEFT_OUT, pageOfLink, placeOf, titleOf } from '../pages.mjs'

const root = resolve(import.meta.dirname, '..', '..')
const pages = new Set(findPages(root))
const addressOf = (page) =>
  `/${placeOf(page)
    .replace(/(^|\/)index\.md$/, '$1')
    .replace(/\.md$/, '.html')}`

const icon = readFileSync(resolve(root, 'services/console/src/page/icon.svg'), 'utf8')

const menu = sections(root).map(({ text, groups }) => ({
  text,
  items: groups.map((group) => ({
    text: group.text,
    collapsed: true,
    items: group.pages.map((page) => ({ text: titleOf(root, page), link: addressOf(page) })),
  })),
}))

/** The highlighter has no grammar for config.pbtxt and nats-server.conf. */
const CONFIGURATION = {
  name: 'pbtxt',
  aliases: ['conf'],
  scopeName: 'source.pbtxt',
  patterns: [
    { match: '#.*$', name: 'comment.line.number-sign' },
    { match: '"(?:[^"\\\\]|\\\\.)*"', name: 'string.quoted.double' },
    { match: '\\b\\w+(?=\\s*[:{\\[])', name: 'entity.name.tag' },
    { match: '(?<![\\w.])-?\\d[\\w.]*', name: 'constant.numeric' },
  ],
}

/** Links lead to the places of pages; what is no page of the site is named, and no link. */
function placeLinks(md) {
  md.core.ruler.push('place-links', ({ tokens, env: { path } }) => {
    const page = path.slice(root.length + 1)
    for (const { children } of tokens)
      children?.forEach((token, i) => placeLink(page, token, children.slice(i)))
  })
}

function placeLink(page, token, following) {
  const href = token.type === 'link_open' ? token.attrGet('href') : undefined
  if (!href || /^([a-z]+:|#)/.test(href)) return
  const found = pageOfLink(page, href, pages)
  if (found !== undefined) {
    token.attrSet('href', addressOf(found.page) + found.anchor)
    return
  }
  const end = following.find(({ type }) => type === 'link_close')
  Object.assign(token, {
    type: 'span_open',
    tag: 'span',
    attrs: [['title', `in the repository: ${href}`]],
  })
  Object.assign(end, { type: 'span_close', tag: 'span' })
}

export default {
  title: 'Tutti',
  description: 'Serves ensembles of models to Triton clients',
  lang: 'en',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  base: env.TUTTI_SITE_BASE,
  outDir: env.TUTTI_SITE_OUT,
  srcDir: '../',
  srcExclude: LEFT_OUT,
  rewrites: Object.fromEntries([...pages].map((page) => [page, placeOf(page)])),
  markdown: {
    html: false,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: anchorOf },
    languages: [CONFIGURATION],
    config: placeLinks,
  },
  themeConfig: {
    nav: menu.map(({ text, items }) => ({ text, link: items[0].items[0].link })),
    sidebar: menu.map((section) =>
      section.items.length === 1 ? section.items[0] : { ...section, collapsed: true },
    ),
    outline: [2, 3],
    search: { provider: 'local' },
    version: env.TUTTI_SITE_VERSION,
  },
}
