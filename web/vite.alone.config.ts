import { createHash } from 'node:crypto'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig, type Plugin } from 'vite'

/** Script and style go into the file itself; the policy names them by their hashes, and allows nothing else. */
function inline(): Plugin {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  return {
    name: 'inline',
    enforce: 'post',
    generateBundle(_, bundle) {
      let [script, style] = ['', '']
      for (const [name, file] of Object.entries(bundle)) {
        if (name.endsWith('.js') && file.type === 'chunk') script += file.code
        else if (name.endsWith('.css') && file.type === 'asset') style += String(file.source)
        else continue
        delete bundle[name]
      }
      script = script.replaceAll('</script', '<\\/script')
      const page = bundle['alone.html']
      if (page?.type !== 'asset') throw new Error('there is no alone.html')
      const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)} 'unsafe-hashes'; img-src data:; base-uri 'none'; form-action 'none'`
      page.source = String(page.source)
        .replace(/<script type="module"[^>]*><\/script>/, '')
        .replace(/<link rel="stylesheet"[^>]*>/, '')
        .replace('<!-- policy -->', () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace('<!-- style -->', () => `<style>${style}</style>`)
        .replace('<!-- script -->', () => `<script type="module">${script}</script>`)
    },
  }
}

// One file that needs no server: regard attend --html puts the numbers into it.
export default defineConfig({
  plugins: [svelte(), inline()],
  base: './',
  publicDir: false,
  build: {
    outDir: process.env.REGARD_PAGE ?? '../src/regard/inspection/page',
    emptyOutDir: false,
    cssCodeSplit: false,
    modulePreload: false,
    rolldownOptions: { input: 'alone.html' },
  },
})
