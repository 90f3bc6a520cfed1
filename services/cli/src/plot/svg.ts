import { printable } from '@tutti/chassis'

/*
 * Pictures as text: names of models and servers come into them only through `xmlText`.
 */

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text as content or attribute of XML, with what XML cannot hold as escapes. */
export function xmlText(text: string): string {
  return printable(text.toWellFormed())
    .replace(/[\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"']/g, (one) => ENTITIES[one] ?? one)
}

type Attributes = Readonly<Record<string, string | number>>

/** An element. @param content - is XML already. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const written = Object.entries(attributes).map(([key, value]) => {
    const text = typeof value === 'number' ? String(Number(value.toFixed(2))) : xmlText(value)
    return ` ${key}="${text}"`
  })
  return `<${name}${written.join('')}${content === '' ? '/>' : `>${content}</${name}>`}`
}

/** A line of text that is cut at `most` characters; its whole is its tooltip then. */
export function label(text: string, attributes: Attributes, most = Infinity): string {
  const all = Array.from(text)
  if (all.length <= most) return element('text', attributes, xmlText(text))
  const title = element('title', {}, xmlText(text))
  return element('text', attributes, title + xmlText(`${all.slice(0, most - 1).join('')}…`))
}

/** A whole picture on white, in pixels. @param title - what readers of the page hear. */
export function picture(
  o: { readonly width: number; readonly height: number; readonly title: string },
  content: string,
): string {
  const { width, height, title } = o
  const about = element('title', {}, xmlText(title))
  const background = element('rect', { width, height, fill: '#ffffff' })
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'img',
    'font-family': 'system-ui, sans-serif',
    'font-size': 12,
    fill: '#1c2430',
  }
  return `${element('svg', attributes, about + background + content)}\n`
}
