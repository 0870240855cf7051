// Renders the mermaid blocks of the pages as SVG, for the docs site: it shows pictures without a script from elsewhere.
// Run by `make pictures`, which fetches the renderer. A picture's name is a digest of its text, so a changed text has no picture.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const [modules, docs, ...others] = process.argv.slice(2)
const { renderMermaidSVG } = await import(pathToFileURL(resolve(modules, 'beautiful-mermaid/dist/index.js')))
const folder = join(docs, 'pictures')
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
const pages = [docs, ...others].flatMap((below) =>
  readdirSync(below, { recursive: true }).filter((name) => name.endsWith('.md')).map((name) => join(below, name)))
for (const page of pages) {
  for (const [, text] of readFileSync(page, 'utf8').matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)) {
    const name = createHash('sha256').update(text.trim()).digest('hex').slice(0, 12)
    const drawn = renderMermaidSVG(text).replace(/@import url\([^)]*\);?/g, '').replace(/[ \t]+$/gm, '')
    writeFileSync(join(folder, `${name}.svg`), drawn.trim() + '\n')
  }
}
