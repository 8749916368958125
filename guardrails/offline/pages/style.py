"""
The look of the page: light and dark, from 320 px on, on paper.
"""

from typing import Final


STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--card:#f6f7f8;--fg:#1b1f24;--dim:#57606a;--line:#d4d8dd;--link:#0a5cad;
--cell:#dfe3e8;--right:#009e73;--wrong:#d55e00;--stripe:rgba(0,0,0,.55)}
@media (prefers-color-scheme:dark){:root{--bg:#15181c;--card:#1e2227;--fg:#e6e8ea;--dim:#a2aab3;--line:#3a4149;
--link:#7ab8f5;--cell:#343b43}}
@media print{:root{color-scheme:light;--bg:#fff;--card:#fff;--fg:#000;--dim:#444;--line:#bbb;--link:#000;--cell:#e3e3e3}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--bg);color:var(--fg);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main,header,footer{max-width:92rem;margin:0 auto;padding:0 clamp(.75rem,3vw,2rem)}
header{padding-top:1.5rem}
h1,h2,h3,p,ul,dl,dd,figure{margin:0;padding:0}
h1{font-size:1.5rem;line-height:1.25;margin-bottom:.5rem}
h2{font-size:1.15rem;margin:2.5rem 0 .25rem;padding-top:1rem;border-top:1px solid var(--line)}
h3{font-size:.95rem;margin:1.25rem 0 .25rem}
h1,h2,h3,p,li,td,tbody th,dd{overflow-wrap:anywhere}
ul{list-style:none}
small,.dim,caption{color:var(--dim);font-size:.82rem;font-weight:400}
bdi{unicode-bidi:isolate}
a{color:var(--link)}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.lead{max-width:65rem;font-size:1.05rem;margin-bottom:.4rem}
header+main>.box{margin-top:1.25rem}
.note{max-width:65rem;color:var(--dim);font-size:.9rem;margin-bottom:.75rem}
.alert{border-left:4px solid var(--wrong);padding:.4rem .75rem;margin:.75rem 0;background:var(--card)}
nav ul{display:flex;flex-wrap:wrap;gap:.15rem 1rem;margin-top:.75rem;font-size:.9rem}
nav a{display:inline-block;padding:.15rem 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,12.5rem),1fr));gap:.6rem;margin:1.25rem 0 0}
.tiles>li{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.6rem .8rem}
.tiles h3{margin:0;font-size:.85rem;font-weight:600;color:var(--dim)}
.tiles b{font-size:1.45rem;line-height:1.3;font-variant-numeric:tabular-nums;display:block}
.who{color:var(--dim);font-size:.82rem;overflow-wrap:anywhere}
i{font-style:normal}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.4rem 0 .6rem;font-size:.9rem}
.legend i,.cells i,th i{display:inline-block;width:.95rem;height:.95rem;border-radius:2px;vertical-align:-.15rem;
font:600 .62rem/.95rem system-ui,sans-serif;text-align:center;overflow:hidden}
.legend i,th i{margin-right:.35rem}
.right{background:var(--right);fill:var(--right);color:#000}
.wrongbar{background:repeating-linear-gradient(135deg,var(--wrong) 0 4px,#f5b48a 4px 7px);color:#000}
.limit{background:#7f8c99}.unknown{background:#d9d3c1;color:#000}.unknown::before{content:"?"}.rule{background:#b8a1d9;color:#000}
.limit::before{content:"L"}.rule::before{content:"R"}.right::before{content:"\\2713"}.wrongbar::before{content:"!"}
.limit{color:#000}
.bars>li{display:grid;grid-template-columns:minmax(0,13rem) minmax(0,1fr);gap:.1rem .75rem;padding:.25rem 0;break-inside:avoid}
.bars .name{font-size:.9rem;overflow-wrap:anywhere;grid-row:1/span 2}
.bars .line{grid-column:2;display:grid;grid-template-columns:minmax(0,1fr) minmax(0,24rem);gap:0 .75rem;align-items:center}
.bars.paired .line{grid-template-columns:minmax(0,7rem) minmax(0,1fr) minmax(0,24rem)}
.bar{display:flex;height:1.05rem;background:var(--card);border-radius:2px;overflow:hidden;min-width:0}
.bar i{min-width:2px;overflow:hidden;border-right:1px solid var(--bg);font:600 .68rem/1.05rem system-ui,sans-serif;
text-indent:.2rem;white-space:nowrap;flex:none}
.bar i:last-child{border-right:0}
.bar i.thin::before{content:none}
.said{font-size:.85rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.columns{margin:.5rem 0 1rem}
.columns svg{display:block;width:100%;height:9rem;background:var(--card);border-top:1px dashed var(--line);border-bottom:1px solid var(--dim)}
.columns g:hover{opacity:.75}
.columns .top,.columns .axis{font-size:.8rem;color:var(--dim);font-variant-numeric:tabular-nums}
.columns .axis{display:flex;justify-content:space-between;gap:.5rem}
.box{overflow-x:auto;max-width:100%;border:1px solid var(--line);border-radius:.4rem;margin:.5rem 0 1rem}
.box.tall{max-height:min(36rem,85vh);overflow-y:auto}
.box thead{position:sticky;top:0;z-index:2;background:var(--bg)}
.box thead::after{content:"";position:absolute;left:0;right:0;bottom:0;border-bottom:1px solid var(--line)}
.box tbody th,.box tfoot th{position:sticky;left:0;z-index:1;background:var(--bg)}
.z{color:var(--dim);opacity:.75}
table{border-collapse:collapse;width:100%;font-size:.86rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.4rem .6rem}
th,td{padding:.25rem .5rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
thead th{vertical-align:bottom;font-weight:600;border-top:0}
thead tr+tr th{border-top:1px solid var(--line)}
thead th[colspan]{text-align:center;border-left:1px solid var(--line)}
tbody th,tfoot th{font-weight:500;min-width:min(13rem,38vw);max-width:24rem;overflow-wrap:anywhere}
.pair tbody th{min-width:min(17rem,38vw)}
td{min-width:3rem}td.o{white-space:nowrap}
td.w{min-width:min(11.5rem,40vw);max-width:24rem}
.n{text-align:right}td.n{white-space:nowrap}
tfoot th,tfoot td{font-weight:700;border-top:2px solid var(--dim)}
.box tr.bad td,.box tr.bad th{background:color-mix(in srgb,var(--wrong) 14%,var(--bg))}
th button{all:unset;cursor:pointer;font:inherit}
th button::after{content:"\\2195";opacity:.35;margin-left:.25rem}
th button:focus-visible{outline:2px solid var(--link);outline-offset:2px}
[aria-sort=ascending] button::after{content:"\\2191";opacity:1}
[aria-sort=descending] button::after{content:"\\2193";opacity:1}
.search{display:block;margin:.5rem 0;font-size:.9rem}
.search input{font:inherit;width:16rem;max-width:100%;padding:.2rem .4rem;border:1px solid var(--dim);border-radius:.3rem;background:var(--bg);color:inherit}
.more{font:inherit;font-size:.9rem;padding:.25rem .7rem;border:1px solid var(--line);border-radius:.3rem;background:var(--card);color:inherit;cursor:pointer}
[hidden]{display:none!important}
.sessions{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));gap:0 1.5rem}
.sessions>.long{grid-column:1/-1}
.sessions>li{min-width:0;padding:.6rem 0;border-bottom:1px solid var(--line)}
.sessions h3{margin:0 0 .2rem}
.strip{display:grid;grid-template-columns:minmax(0,1fr);gap:0 .75rem}
.strip.two{grid-template-columns:minmax(0,7rem) minmax(0,1fr)}
.cells{line-height:1.1rem}
:where(.cells i){margin:0 2px 2px 0;background:var(--cell)}
.cells .ran{background:none;color:inherit;box-shadow:inset 0 0 0 2px var(--k)}
.cells .wrong{outline:2px solid var(--wrong);outline-offset:0;text-decoration:underline}
.cells b{display:inline-block;overflow:hidden;max-width:100%;height:.95rem;font:600 .68rem/.95rem system-ui,sans-serif;border-radius:2px;padding:0 .5rem;margin:0 2px 2px 0;vertical-align:-.15rem}
.cells b::before{margin-right:.35rem}
:where(.cells b){background:var(--cell);color:var(--dim)}
details{margin:.25rem 0}
summary{cursor:pointer;font-size:.85rem;color:var(--dim);width:fit-content}
details details ul,li details ul,.plain{list-style:disc;padding-left:1.25rem;font-size:.88rem}
dl{display:grid;grid-template-columns:minmax(0,12rem) minmax(0,1fr);gap:.3rem 1rem;max-width:65rem;font-size:.9rem;margin-top:.5rem}
dt{font-weight:600}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,34rem),1fr));gap:0 1.5rem}
.pair>*{min-width:0}
footer{margin-top:3rem;padding-bottom:2rem;color:var(--dim);font-size:.85rem}
i,rect,b,tr.bad td,tr.bad th{forced-color-adjust:none;-webkit-print-color-adjust:exact;print-color-adjust:exact}
@media (max-width:44rem){
.bars>li{grid-template-columns:minmax(0,1fr)}
.bars .name{grid-row:auto;font-weight:500}
.strip.two,.bars .line,.bars.paired .line{grid-column:1;grid-template-columns:minmax(0,1fr)}
dl{grid-template-columns:minmax(0,1fr);gap:0}dd{margin-bottom:.5rem}
}
@media print{
body{font-size:10pt}main,header,footer{max-width:none;padding:0}
nav,.search{display:none}
.box,.box.tall{overflow:visible;max-height:none;border:0}
table{font-size:7.5pt}th,td{padding:.1rem .25rem}td{min-width:0}tbody th{min-width:7rem}td.w{min-width:7rem}
.box thead,.box tbody th,.box tfoot th{position:static}
.box.tall tbody tr:nth-child(n+51){display:none}.box.tall::after{content:"the first 50 rows";font-size:7.5pt;color:var(--dim)}
tfoot{display:table-row-group}thead{display:table-header-group}tr,.tiles>li,.sessions>li,figure{break-inside:avoid}
h2,h3{break-after:avoid}th button::after{content:none}
}
"""
